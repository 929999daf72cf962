import type { FactName, Place } from "$lib/backend/bindings";

/** Where a quantization is, in words. */
export function placeWords(place: Place): string {
  switch (place.place) {
    case "on_disk":
      return "on disk";
    case "can_be_made":
      return "can be made";
    case "can_be_downloaded":
      return "download";
  }
}

/** Names of the facts. */
export const factWords: Record<FactName, string> = {
  name: "Name in the file",
  architecture: "Architecture",
  kind: "Kind",
  parameters: "Parameters",
  active_parameters: "Used by one token",
  quantization: "Quantization",
  bits_per_weight: "Bits per weight",
  layers: "Layers",
  context_length: "Trained context",
  file_bytes: "File",
  header_bytes: "Header",
  weight_bytes_per_token: "Weights read per token",
  kv_bytes_per_token: "Cache per token",
  split: "Parts",
  path: "Path",
};
