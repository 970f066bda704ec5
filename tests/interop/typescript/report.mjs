// Named checks, each printed as one line: `ok`, `FAIL` or `n/a`.

import { isDeepStrictEqual } from 'node:util';

/** Milliseconds that one check may take unless it says otherwise. */
export const WAIT = 5_000;

/** Characters of a reason that are printed. */
const LONGEST = 500;

/** The server did something else than expected. */
class Mismatch extends Error {}

/** The check cannot be made with this package. */
export class NotAvailable extends Error {}

export function expect(condition, why) {
  if (!condition) throw new Mismatch(why);
}

export function equal(actual, expected, what) {
  expect(
    isDeepStrictEqual(actual, expected),
    `${what}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(actual)}`,
  );
}

export const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Waits for the condition, but no longer than a check does. */
export async function until(condition) {
  const end = Date.now() + 2 * WAIT;
  while (!condition()) {
    if (Date.now() > end) throw new Mismatch('it did not happen');
    await sleep(10);
  }
}

export class Report {
  passed = 0;
  failed = 0;
  #names = new Set();

  /** Runs the check: it passes unless it throws or takes too long. */
  async check(name, body, wait = WAIT) {
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Mismatch(`nothing within ${wait / 1000} s`)), wait);
    });
    const running = Promise.resolve().then(body);
    running.catch(() => {}); // what fails after its time was reported already
    try {
      await Promise.race([running, late]);
      this.ok(name);
    } catch (error) {
      if (error instanceof NotAvailable) this.notAvailable(name, error.message);
      else this.fail(name, describe(error));
    } finally {
      clearTimeout(timer);
    }
  }

  ok(name) {
    this.#once(name);
    this.passed += 1;
    console.log(`ok ${name}`);
  }

  fail(name, why) {
    this.#once(name);
    this.failed += 1;
    console.log(`FAIL ${name}: ${why}`);
  }

  notAvailable(name, why) {
    this.#once(name);
    console.log(`n/a ${name}: ${why}`);
  }

  #once(name) {
    if (this.#names.has(name)) throw new Error(`two checks are named ${name}`);
    this.#names.add(name);
  }
}

export function describe(error) {
  const text = String(error?.message ?? error).replace(/\s+/g, ' ').slice(0, LONGEST);
  return error instanceof Mismatch ? text : `${error?.name ?? 'error'}: ${text}`;
}
