import axe from "axe-core";

/** What axe-core has against what is shown, one line a fault. Colours it cannot judge without a screen. */
export async function faults(element: Element = document.body): Promise<string[]> {
  const { violations } = await axe.run(element, {
    rules: { "color-contrast": { enabled: false }, region: { enabled: false } },
  });
  return violations.flatMap((violation) =>
    violation.nodes.map((node) => `${violation.id}: ${node.html.slice(0, 160)}`),
  );
}
