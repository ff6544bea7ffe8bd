export * from './doubles.ts';
export { type TestHooks, useEmulator } from './use-emulator.ts';
