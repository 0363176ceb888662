/** Wakes one loop of a lane. A ring is lost if the loop is not waiting, so check the state before waiting. */
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

  /** Wakes the loop if it is waiting. */
  ring(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}
