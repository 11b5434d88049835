// The viewer has no types. Loading it defines the element `rapi-doc`.
declare module "rapidoc";
