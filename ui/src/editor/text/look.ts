// How editors look: the page's own colours, light and dark, for text, faults and offers.

import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import type { Extension } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName), tags.attributeName], color: "var(--accent)" },
  { tag: [tags.string, tags.content], color: "var(--text)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--busy)" },
  { tag: [tags.keyword, tags.operator, tags.controlKeyword], color: "var(--busy)" },
  { tag: [tags.comment, tags.lineComment, tags.blockComment], color: "var(--dim)", fontStyle: "italic" },
  { tag: [tags.punctuation, tags.separator, tags.bracket, tags.meta], color: "var(--dim)" },
  { tag: tags.invalid, color: "var(--bad)" },
]);

const shape = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--card)", fontSize: "13px", height: "100%" },
  // The surrounding element shows the focus: the pane, or the small field.
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5", overflow: "auto" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--card)", color: "var(--dim)", border: "0" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--raised) 60%, transparent)" },
  ".cm-activeLineGutter": { backgroundColor: "var(--raised)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--accent-soft)",
  },
  ".cm-selectionMatch": { backgroundColor: "var(--wait-soft)" },
  ".cm-matchingBracket, &.cm-focused .cm-matchingBracket": {
    backgroundColor: "var(--accent-soft)",
    outline: "1px solid var(--accent)",
  },
  ".cm-step": { backgroundColor: "color-mix(in srgb, var(--accent-soft) 55%, transparent)" },
  ".cm-tooltip": {
    backgroundColor: "var(--card)",
    color: "var(--text)",
    border: "1px solid var(--line)",
    borderRadius: "6px",
    boxShadow: "var(--shadow)",
  },
  ".cm-tooltip-autocomplete > ul > li": { padding: "2px 8px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": {
    backgroundColor: "var(--accent)",
    color: "var(--accent-text)",
  },
  ".cm-completionDetail": { color: "inherit", opacity: "0.8", fontStyle: "normal", marginLeft: "10px" },
  ".cm-diagnostic": { padding: "6px 10px", fontFamily: "var(--sans)", fontSize: "13px" },
  ".cm-diagnostic-error": { borderLeft: "4px solid var(--bad)" },
  ".cm-lintRange-error": {
    backgroundImage: "none",
    textDecoration: "underline wavy var(--bad) 1px",
    textUnderlineOffset: "3px",
  },
  ".cm-panels": { backgroundColor: "var(--raised)", color: "var(--text)" },
  ".cm-foldPlaceholder": { backgroundColor: "var(--raised)", border: "0", color: "var(--dim)" },
});

/** For small fields, which have no fixed height. */
export const small = EditorView.theme({
  "&": { border: "1px solid var(--dim)", borderRadius: "6px", height: "auto", minHeight: "34px" },
  "&.cm-focused": { outline: "2px solid var(--focus)", outlineOffset: "-1px" },
  ".cm-scroller": { maxHeight: "220px", borderRadius: "6px" },
  ".cm-content": { padding: "6px 0" },
});

export const look: Extension = [shape, syntaxHighlighting(colours)];
