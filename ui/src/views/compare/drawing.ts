// A drawing is put into the page only where it is made of shapes and words.
//
// The app makes it and escapes every name in it. This second check stands in the way of anything
// that would still come through: elements and attributes that are not listed are refused, so that
// no script, style, link or foreign content can enter with a figure.

const SVG = "http://www.w3.org/2000/svg";

const ELEMENTS = new Set([
  "svg",
  "g",
  "title",
  "desc",
  "rect",
  "circle",
  "path",
  "line",
  "polyline",
  "polygon",
  "text",
  "tspan",
]);

const ATTRIBUTES = new Set([
  "xmlns",
  "width",
  "height",
  "viewBox",
  "role",
  "aria-label",
  "font-family",
  "font-size",
  "font-weight",
  "text-anchor",
  "letter-spacing",
  "x",
  "y",
  "dx",
  "dy",
  "x1",
  "y1",
  "x2",
  "y2",
  "cx",
  "cy",
  "r",
  "rx",
  "ry",
  "d",
  "points",
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "stroke-linecap",
  "stroke-linejoin",
  "opacity",
  "xml:space",
]);

/** Says what of a drawing was refused. */
export class DrawingRefused extends Error {}

/** The drawing as an element of this page. Throws `DrawingRefused`. */
export function importDrawing(svg: string): SVGSVGElement {
  const parsed = new DOMParser().parseFromString(svg, "image/svg+xml");
  const root = parsed.documentElement;
  if (root.namespaceURI !== SVG || root.localName !== "svg") {
    throw new DrawingRefused("The drawing cannot be read.");
  }
  check(root);
  for (const element of root.querySelectorAll("*")) check(element);
  return document.importNode(root as unknown as SVGSVGElement, true);
}

function check(element: Element): void {
  if (element.namespaceURI !== SVG || !ELEMENTS.has(element.localName)) {
    throw new DrawingRefused(`The drawing holds the element ${element.nodeName}.`);
  }
  for (const attribute of element.attributes) {
    if (!ATTRIBUTES.has(attribute.name)) {
      throw new DrawingRefused(`The drawing holds the attribute ${attribute.name}.`);
    }
    if (/url\s*\(|javascript:|data:/i.test(attribute.value) && attribute.name !== "aria-label") {
      throw new DrawingRefused(`The drawing leads elsewhere in ${attribute.name}.`);
    }
  }
}
