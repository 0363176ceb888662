/** The same as `index.ts` for ES modules. There is one copy of the package, so `instanceof` works across both. */
export * from './index.js';
