// The editor of one definition: canvas and text side by side, a panel for the selection, the server's faults on both,
// test runs on the canvas, saving.

import { EditorView } from "@codemirror/view";
import { useNavigate } from "@tanstack/react-router";
import { ReactFlowProvider } from "@xyflow/react";
import { startTransition, useCallback, useMemo, useState } from "react";
import { Canvas } from "./canvas/Canvas";
import { Palette } from "./canvas/Palette";
import { useBoxes } from "./canvas/useBoxes";
import type { Json } from "./model/types";
import { Problems } from "./Problems";
import { EdgePanel } from "./panel/EdgePanel";
import { EmptyPanel } from "./panel/EmptyPanel";
import { StepPanel } from "./panel/StepPanel";
import { RunBar, StartDialog } from "./run/RunBar";
import { outputs, type StepState, states as statesOf } from "./run/states";
import { useTestRun } from "./run/useTestRun";
import { SaveNotice } from "./SaveNotice";
import { StepList } from "./StepList";
import { NOTHING, only, type Selection } from "./selection";
import { Toolbar } from "./Toolbar";
import { byStep } from "./text/faults";
import { TextPane } from "./text/TextPane";
import { useActions } from "./useActions";
import { useCheck } from "./useCheck";
import { useDefinition } from "./useDefinition";
import { useKeys } from "./useKeys";
import { useLeave } from "./useLeave";
import { type Base, load, useSave } from "./useSave";

const NO_STATES: ReadonlyMap<string, StepState> = new Map();

export function Editor({ initial: source, base: firstBase }: { initial: string; base?: Base }) {
  // The editor uses LF internally; a text with other line breaks is saved with them.
  const windows = source.includes("\r\n");
  const initial = useMemo(() => source.replaceAll("\r\n", "\n"), [source]);
  const definition = useDefinition(initial);
  const { model, drawn, text, change } = definition;
  const sent = useCallback(
    () => (windows ? definition.current().replaceAll("\n", "\r\n") : definition.current()),
    [definition.current, windows],
  );

  const [base, setBase] = useState(firstBase);
  const [saved, setSaved] = useState(firstBase ? initial : "");
  const [selection, setSelection] = useState<Selection>(NOTHING);
  const [list, setList] = useState(false);
  const [asking, setAsking] = useState(false);
  const [input, setInput] = useState<Json>({});
  const navigate = useNavigate();

  const checked = useCheck(text);
  const faults = useMemo(() => {
    if (model.faults.length > 0) return model.faults;
    return checked?.text === text ? checked.faults : [];
  }, [checked, model, text]);
  const warnings = useMemo(
    () => (model.faults.length === 0 && checked?.text === text ? checked.warnings : []),
    [checked, model, text],
  );
  const faultsBy = useMemo(() => byStep(drawn, faults), [drawn, faults]);

  const test = useTestRun();
  const states = useMemo(() => (test.run ? statesOf(drawn, test.run.tasks) : NO_STATES), [drawn, test.run]);
  const given = useMemo(() => outputs(states), [states]);
  const known = useCallback(() => ({ model: drawn, outputs: given }), [drawn, given]);

  const placed = useBoxes(drawn);
  const editable = model.editable;
  const actions = useActions(definition, placed, selection, setSelection);
  const selectStep = useCallback((step: string | undefined) => setSelection(only(step)), []);
  const followCursor = useCallback((step: string | undefined) => startTransition(() => setSelection(only(step))), []);
  const showText = useCallback(
    (offset: number) => {
      const view = definition.view();
      if (!view) return;
      view.dispatch({
        selection: { anchor: Math.min(offset, view.state.doc.length) },
        effects: EditorView.scrollIntoView(Math.min(offset, view.state.doc.length), { y: "center" }),
      });
      view.focus();
    },
    [definition.view],
  );

  const saving = useSave(sent, model.name);
  const keep = useCallback(
    async (on: Base | undefined, force = false) => {
      definition.forget();
      const before = definition.current();
      const outcome = await saving.start(on, force);
      if (outcome.kind !== "saved") return;
      setSaved(before);
      setBase(await load(outcome.name));
      if (outcome.isNew)
        await navigate({
          to: "/workflows/$name/edit",
          params: { name: outcome.name },
          replace: true,
          ignoreBlocker: true,
        });
    },
    [definition.current, definition.forget, navigate, saving.start],
  );
  const dirty = text !== saved;
  useLeave(dirty);

  const startTest = useCallback(() => setAsking(true), []);
  const onKey = useKeys(definition, actions, () => void keep(base), startTest);

  const [one] = selection.steps.size === 1 ? selection.steps : [];
  const step = drawn.steps.find((each) => each.id === one);
  const edge = drawn.edges.find((each) => each.id === selection.edge);
  const note = !editable ? "The text has errors" : dirty ? "Not saved" : base ? `Saved as version ${base.version}` : "";

  return (
    <div className="editor">
      <Toolbar
        title={model.name || base?.name || "New workflow"}
        note={note}
        canUndo={definition.canUndo}
        canRedo={definition.canRedo}
        selected={selection.steps.size + (selection.edge === null ? 0 : 1)}
        editable={editable}
        isGraph={drawn.dialect === "graph"}
        list={list}
        saving={saving.busy}
        testing={test.busy}
        onUndo={definition.undo}
        onRedo={definition.redo}
        onCopy={actions.copy}
        onPaste={actions.paste}
        onRemove={actions.remove}
        onTidy={actions.tidy}
        onList={() => setList(!list)}
        onTest={startTest}
        onSave={() => void keep(base)}
      />
      {saving.outcome && (
        <SaveNotice
          outcome={saving.outcome}
          onOverwrite={(on) => void keep(on, true)}
          onTakeTheirs={(theirs) => {
            definition.replace(theirs.source.replaceAll("\r\n", "\n"));
            setBase(theirs);
            saving.clear();
          }}
          onClose={saving.clear}
        />
      )}
      {definition.refusal && (
        <div className="note waiting notice row" role="alert">
          <span className="grow">{definition.refusal}</span>
          <button type="button" className="quiet" onClick={definition.forget} aria-label="Close">
            ✕
          </button>
        </div>
      )}
      <div className="editor-body">
        <section className="editor-canvas" aria-label="Canvas" onKeyDown={onKey}>
          {drawn.dialect && <Palette dialect={drawn.dialect} disabled={!editable} onAdd={actions.add} />}
          {!editable && (
            <p className="note waiting broken">
              The text has errors, so the canvas shows the last valid version. Fix the text, or undo.
            </p>
          )}
          {list ? (
            <StepList model={drawn} faults={faultsBy} states={states} selection={selection} onSelect={selectStep} />
          ) : (
            <div className="canvas-box">
              <ReactFlowProvider>
                <Canvas
                  key={placed.boxes.size > 0 ? "drawn" : "empty"}
                  model={drawn}
                  placed={placed}
                  faults={faultsBy}
                  states={states}
                  selection={selection}
                  editable={editable}
                  room={`${test.shown} ${editable}`}
                  onSelect={setSelection}
                  onChange={change}
                  onAdd={actions.add}
                />
              </ReactFlowProvider>
            </div>
          )}
          <RunBar test={test} />
        </section>
        <aside
          className="editor-panel"
          aria-label={step ? `Step ${step.name}` : edge ? "Connection" : "Nothing selected"}
        >
          {!step && !edge && <EmptyPanel model={drawn} selected={selection.steps.size} />}
          {step && (
            <StepPanel
              key={step.id}
              model={drawn}
              step={step}
              faults={faultsBy.get(step.id) ?? []}
              state={states.get(step.id)}
              test={test}
              disabled={!editable}
              known={known}
              onChange={change}
              onSelect={selectStep}
              onShowText={showText}
            />
          )}
          {edge && (
            <EdgePanel
              model={drawn}
              edge={edge}
              disabled={!editable}
              onChange={change}
              onSelect={setSelection}
              onShowText={showText}
            />
          )}
        </aside>
        <section className="editor-text" aria-label="Text">
          <TextPane
            initial={initial}
            language={model.language}
            faults={faults}
            warnings={warnings}
            marked={step?.range}
            known={known}
            onView={definition.onView}
            onChange={definition.onChange}
            onCursor={followCursor}
          />
          <Problems
            faults={faults}
            warnings={warnings}
            trouble={checked?.trouble ?? null}
            checked={checked?.text === text}
            model={drawn}
            onShow={showText}
          />
        </section>
      </div>
      {asking && (
        <StartDialog
          schema={model.inputSchema}
          given={input}
          busy={test.busy}
          onClose={() => setAsking(false)}
          onStart={(value) => {
            setInput(value);
            setAsking(false);
            void test.start(sent(), value);
          }}
        />
      )}
    </div>
  );
}
