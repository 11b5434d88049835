// Lays out large graphs beside the page, so that it stays responsive.
import { layout, type Shape } from "./layout";

self.onmessage = (event: MessageEvent<{ key: string; shape: Shape }>) => {
  const { key, shape } = event.data;
  self.postMessage({ key, boxes: layout(shape.nodes, shape.edges) });
};
