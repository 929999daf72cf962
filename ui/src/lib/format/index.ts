export * from "./numbers";
export * from "./times";
