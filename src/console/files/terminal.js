// A small terminal: the part of VT100 and xterm that shells, editors and pagers use. The screen is an array of rows; a
// row is an array of cells {c, s} with a character and a style (classes of console.css).
const TAB = 8, SCROLLBACK_MAX = 2000;

export class Screen {
  constructor(columns, rows) {
    this.columns = columns;
    this.rows = rows;
    this.history = [];
    this.reset();
  }

  reset() {
    this.lines = Array.from({ length: this.rows }, () => []);
    this.x = this.y = 0;
    this.style = "";
    this.saved = [0, 0];
    this.top = 0;
    this.bottom = this.rows - 1;
    this.other = null; // the main screen while the alternate one is shown
    this.applicationKeys = false;
    this.cursor = true;
    this.rest = "";
  }

  resize(columns, rows) {
    while (this.lines.length > rows) {
      if (this.y < this.lines.length - 1) this.lines.pop();
      else {
        this.history.push(this.lines.shift());
        this.y--;
      }
    }
    while (this.lines.length < rows) this.lines.push([]);
    this.columns = columns;
    this.rows = rows;
    this.top = 0;
    this.bottom = rows - 1;
    this.x = Math.min(this.x, columns - 1);
    this.y = Math.min(this.y, rows - 1);
  }

  // Takes text; an escape sequence that is not whole yet waits for the rest.
  write(text) {
    const all = this.rest + text;
    this.rest = "";
    for (let i = 0; i < all.length;) {
      if (all[i] !== "\x1b") {
        const c = String.fromCodePoint(all.codePointAt(i));
        this.character(c);
        i += c.length;
        continue;
      }
      const match = /^\x1b(?:\[([<-?]?)([0-9;:]*)([ -/]*)([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[()*+#%].|[^[\]PX^_()*+#%])/s.exec(all.slice(i));
      if (!match) {
        // A possible start of an escape sequence is buffered, but never long texts.
        if (all.length - i < 4096) this.rest = all.slice(i);
        return;
      }
      i += match[0].length;
      if (match[4]) this.control(match[1], match[2].split(/[;:]/).map((n) => (n === "" ? null : Number(n))), match[4]);
      else this.escape(match[0][1]);
    }
  }

  character(c) {
    if (c === "\n" || c === "\v" || c === "\f") return this.down();
    if (c === "\r") { this.x = 0; return; }
    if (c === "\b") { this.x = Math.max(0, Math.min(this.x, this.columns) - 1); return; }
    if (c === "\t") { this.x = Math.min(this.columns - 1, (Math.floor(this.x / TAB) + 1) * TAB); return; }
    if (c < " " || c === "\x7f") return;
    if (this.x >= this.columns) { this.x = 0; this.down(); }
    const line = this.lines[this.y];
    while (line.length < this.x) line.push({ c: " ", s: "" });
    line[this.x++] = { c, s: this.style };
  }

  down() {
    if (this.y !== this.bottom) { this.y = Math.min(this.y + 1, this.rows - 1); return; }
    this.scrollUp(1);
  }

  scrollUp(count) {
    for (let i = 0; i < count; i++) {
      const [gone] = this.lines.splice(this.top, 1);
      this.lines.splice(this.bottom, 0, []);
      if (this.top === 0 && !this.other) this.history.push(gone);
    }
    if (this.history.length > SCROLLBACK_MAX) this.history.splice(0, this.history.length - SCROLLBACK_MAX);
  }

  scrollDown(count) {
    for (let i = 0; i < count; i++) {
      this.lines.splice(this.bottom, 1);
      this.lines.splice(this.top, 0, []);
    }
  }

  escape(c) {
    if (c === "M") { if (this.y === this.top) this.scrollDown(1); else this.y = Math.max(0, this.y - 1); }
    else if (c === "D") this.down();
    else if (c === "E") { this.x = 0; this.down(); }
    else if (c === "7") this.saved = [this.x, this.y];
    else if (c === "8") [this.x, this.y] = this.saved;
    else if (c === "c") this.reset();
  }

  control(mark, numbers, c) {
    const n = Math.min(Math.max(1, numbers[0] || 1), 10000), clampX = (x) => Math.max(0, Math.min(this.columns - 1, x)), clampY = (y) => Math.max(0, Math.min(this.rows - 1, y));
    if (mark === "?") { if (c === "h" || c === "l") numbers.forEach((mode) => this.mode(mode, c === "h")); return; }
    if (mark !== "") return;
    const line = this.lines[this.y];
    switch (c) {
      case "A": this.y = clampY(this.y - n); break;
      case "B": case "e": this.y = clampY(this.y + n); break;
      case "C": case "a": this.x = clampX(this.x + n); break;
      case "D": this.x = clampX(this.x - n); break;
      case "E": this.x = 0; this.y = clampY(this.y + n); break;
      case "F": this.x = 0; this.y = clampY(this.y - n); break;
      case "G": case "`": this.x = clampX(n - 1); break;
      case "d": this.y = clampY(n - 1); break;
      case "H": case "f": this.y = clampY(n - 1); this.x = clampX((numbers[1] || 1) - 1); break;
      case "J": this.eraseScreen(numbers[0] || 0); break;
      case "K": this.eraseLine(this.y, numbers[0] || 0); break;
      case "L": case "M": this.shiftLines(c, Math.min(n, this.rows)); break;
      case "P": line.splice(this.x, n); break;
      case "@": if (line.length > this.x) line.splice(this.x, 0, ...Array.from({ length: Math.min(n, this.columns) }, () => ({ c: " ", s: "" }))); line.splice(this.columns); break;
      case "X": for (let i = this.x; i < Math.min(line.length, this.x + n); i++) line[i] = { c: " ", s: "" }; break;
      case "S": this.scrollUp(Math.min(n, this.rows)); break;
      case "T": this.scrollDown(Math.min(n, this.rows)); break;
      case "r": this.top = clampY(n - 1); this.bottom = clampY((numbers[1] || this.rows) - 1); if (this.bottom <= this.top) { this.top = 0; this.bottom = this.rows - 1; } this.x = this.y = 0; break;
      case "m": this.paint(numbers); break;
      case "s": this.saved = [this.x, this.y]; break;
      case "u": [this.x, this.y] = this.saved; break;
    }
  }

  shiftLines(c, count) {
    if (this.y < this.top || this.y > this.bottom) return;
    for (let i = 0; i < count; i++) {
      this.lines.splice(c === "L" ? this.bottom : this.y, 1);
      this.lines.splice(c === "L" ? this.y : this.bottom, 0, []);
    }
  }

  eraseLine(y, how) {
    const line = this.lines[y];
    if (how === 0) line.splice(this.x);
    else if (how === 2) line.splice(0);
    else for (let i = 0; i <= Math.min(this.x, line.length - 1); i++) line[i] = { c: " ", s: "" };
  }

  eraseScreen(how) {
    if (how === 3) { this.history = []; return; }
    const [from, to] = how === 0 ? [this.y + 1, this.rows] : how === 1 ? [0, this.y] : [0, this.rows];
    for (let y = from; y < to; y++) this.lines[y] = [];
    if (how !== 2) this.eraseLine(this.y, how);
  }

  mode(number, on) {
    if (number === 1) this.applicationKeys = on;
    if (number === 25) this.cursor = on;
    if (![47, 1047, 1049].includes(number) || on === (this.other !== null)) return;
    if (on) {
      this.other = { lines: this.lines, x: this.x, y: this.y };
      this.lines = Array.from({ length: this.rows }, () => []);
    } else {
      ({ lines: this.lines, x: this.x, y: this.y } = this.other);
      this.other = null;
      this.resize(this.columns, this.rows);
    }
  }

  // Colours of 256 and of 24 bits are left out: their numbers are skipped.
  paint(numbers) {
    const set = (pattern, name) => { this.style = (this.style.split(" ").filter((word) => word && !pattern.test(word)).join(" ") + " " + name).trim(); };
    for (let i = 0; i < numbers.length; i++) {
      const n = numbers[i] || 0;
      if (n === 0) this.style = "";
      else if (n === 1) set(/^bold$/, "bold");
      else if (n === 4) set(/^under$/, "under");
      else if (n === 7) set(/^inverse$/, "inverse");
      else if (n === 22) set(/^bold$/, "");
      else if (n === 24) set(/^under$/, "");
      else if (n === 27) set(/^inverse$/, "");
      else if ((n >= 30 && n <= 37) || (n >= 90 && n <= 97)) set(/^fg/, "fg" + (n % 10));
      else if (n === 39) set(/^fg/, "");
      else if (n === 38 || n === 48) i += numbers[i + 1] === 5 ? 2 : 4;
    }
  }

  // The rows as text, for tests and for reading out.
  text() { return this.lines.map((line) => line.map((cell) => cell.c).join("").trimEnd()).join("\n").trimEnd(); }
}

const KEYS = { Enter: "\r", Backspace: "\x7f", Tab: "\t", Escape: "\x1b", Delete: "\x1b[3~", Insert: "\x1b[2~", PageUp: "\x1b[5~", PageDown: "\x1b[6~",
               F1: "\x1bOP", F2: "\x1bOQ", F3: "\x1bOR", F4: "\x1bOS", F5: "\x1b[15~", F6: "\x1b[17~", F7: "\x1b[18~", F8: "\x1b[19~", F9: "\x1b[20~", F10: "\x1b[21~" };
const ARROWS = { ArrowUp: "A", ArrowDown: "B", ArrowRight: "C", ArrowLeft: "D", Home: "H", End: "F" };

// The bytes of a key, or null for keys of the browser.
export function keyText(event, applicationKeys) {
  if (event.metaKey || event.isComposing) return null;
  if (ARROWS[event.key]) return (applicationKeys ? "\x1bO" : "\x1b[") + ARROWS[event.key];
  if (event.key === "Tab" && event.shiftKey) return "\x1b[Z";
  if (KEYS[event.key]) return (event.altKey ? "\x1b" : "") + KEYS[event.key];
  if ([...event.key].length !== 1) return null;
  if (event.ctrlKey && !event.altKey) {
    const code = event.key.toUpperCase().charCodeAt(0);
    if (event.shiftKey || event.key === "]") return null; // copy, paste, and the way out
    return code >= 64 && code < 96 ? String.fromCharCode(code - 64) : event.key === " " ? "\0" : null;
  }
  return (event.altKey && !event.ctrlKey ? "\x1b" : "") + event.key;
}
