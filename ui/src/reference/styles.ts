// RapiDoc writes `style` attributes and elements in its templates, which the Content-Security-Policy refuses. Setting the
// same styles through the object model is allowed, so they are set that way. The policy stays as strict as elsewhere.

const MARK = "data-css";
const SHEET = "data-sheet";

function apply(root: ParentNode): void {
  for (const element of root.querySelectorAll<HTMLElement>(`[${MARK}]`)) {
    element.style.cssText = element.getAttribute(MARK) ?? "";
    element.removeAttribute(MARK);
  }
}

/** Must run before the viewer is loaded. */
export function stylesWithoutAttributes(): void {
  const written = Object.getOwnPropertyDescriptor(Element.prototype, "innerHTML");
  Object.defineProperty(HTMLTemplateElement.prototype, "innerHTML", {
    configurable: true,
    get(this: Element) {
      return written?.get?.call(this);
    },
    set(this: Element, html: string) {
      // Bound attributes have names of their own while they are in a template: `style$lit$`.
      // The template may fill in text there as it may in a style element.
      const inert = String(html)
        .replace(/<style>/g, `<textarea hidden ${SHEET}>`)
        .replace(/<\/style>/g, "</textarea>");
      written?.set?.call(this, inert.replace(/(\s)style(\s*=\s*["'])/g, `$1${MARK}$2`));
    },
  });
  const importNode = Document.prototype.importNode;
  Document.prototype.importNode = function <T extends Node>(this: Document, node: T, deep?: boolean): T {
    const made = importNode.call(this, node, deep) as T;
    if (made instanceof DocumentFragment) apply(made);
    return made;
  };
  const setAttribute = Element.prototype.setAttribute;
  Element.prototype.setAttribute = function (name: string, value: string): void {
    if (name === "style" && (this instanceof HTMLElement || this instanceof SVGElement)) this.style.cssText = value;
    else setAttribute.call(this, name, value);
  };
}

/** Applies the style elements of the viewer once they have their text. */
export function adoptStyles(root: ShadowRoot): void {
  for (const element of root.querySelectorAll(`[${SHEET}]`)) {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(element.textContent ?? "");
    root.adoptedStyleSheets.push(sheet);
  }
}
