// Lays out large graphs beside the page, so that it stays responsive.

import { arrange, type Shape } from "./boxes";

self.onmessage = (event: MessageEvent<{ key: string; shape: Shape }>) => {
  self.postMessage({ key: event.data.key, boxes: arrange(event.data.shape) });
};
