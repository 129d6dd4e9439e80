/**
 * A bounded memory of what was used lately: two maps of which the older one is dropped when the younger one is full, so
 * that a hit costs one look, and what is asked for again and again stays. Holds between `size` and twice as many.
 */
export class Recent<T> {
  #young = new Map<string, T>();
  #old = new Map<string, T>();
  #size: number;

  constructor(size: number) {
    this.#size = size;
  }

  get(key: string): T | undefined {
    const young = this.#young.get(key);
    if (young !== undefined) return young;
    const old = this.#old.get(key);
    if (old !== undefined) this.set(key, old);
    return old;
  }

  set(key: string, value: T): void {
    if (this.#young.size >= this.#size) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(key, value);
  }

  delete(key: string): void {
    this.#young.delete(key);
    this.#old.delete(key);
  }

  clear(): void {
    this.#young.clear();
    this.#old.clear();
  }
}
