/** Wakes one loop of a lane. A ring that nobody waits for is not kept: look at the state before waiting. */
export class Bell {
  #wake: (() => void) | undefined;

  /** Waits until it rings, or for some milliseconds. */
  wait(ms?: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = ms === undefined ? undefined : setTimeout(() => this.ring(), ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Wakes whoever waits. */
  ring(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}
