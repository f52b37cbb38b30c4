export const transform = () => [];
