export * from "./measuring";
export * from "./models";
export * from "./warnings";
