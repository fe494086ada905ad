/** What this browser keeps of a user's choices. A frame of another page may not: then nothing is kept. */

/** @param {string} name @returns {string | null} */
export function kept(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

/** @param {string} name @param {string} value */
export function keep(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    // It is as it was at the next start.
  }
}
