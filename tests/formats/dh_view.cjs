// node dh_view.cjs DH_VIEW.JS FILE: loads a DHAT file with valgrind's viewer, on as much of a browser as it needs, and prints all
// text that it shows.
const fs = require("fs");
const vm = require("vm");

class Element {
  constructor() {
    this.childNodes = [];
    this.classList = { add() {}, remove() {}, toggle() {}, contains: () => false };
    this.selectedIndex = 0;
    this.text = "";
  }
  get textContent() { return this.text + this.childNodes.map((child) => child.textContent).join(""); }
  set textContent(value) { this.text = String(value); this.childNodes = []; }
  appendChild(child) { this.childNodes.push(child); child.parentNode = this; return child; }
  replaceChild(fresh, old) { this.childNodes[this.childNodes.indexOf(old)] = fresh; fresh.parentNode = this; }
  cloneNode() { return new Element(); }
  removeChild(child) { this.childNodes = this.childNodes.filter((each) => each !== child); }
  get firstChild() { return this.childNodes[0]; }
  get lastChild() { return this.childNodes[this.childNodes.length - 1]; }
  click() {}
}

const document = {
  body: new Element(),
  location: { search: "" },
  createElement: () => new Element(),
  createTextNode(text) { const made = new Element(); made.text = String(text); return made; },
};
const context = vm.createContext({
  document, console, URLSearchParams, performance: { now: () => 0 },
  FileReader: class { readAsText(file) { this.onload({ target: { result: fs.readFileSync(file.name, "utf8") } }); } },
});
vm.runInContext(fs.readFileSync(process.argv[2], "utf8"), context);
context.file = process.argv[3];
vm.runInContext("onLoad(); gSelect.selectedIndex = gSelectData.findIndex((each) => each.isDefault);" +
  "gInput.files = [{ name: file }]; loadFile();", context);
console.log(document.body.textContent);
