// Parses server-sent events from a stream of text. Pure: bytes, reconnecting and interpretation are elsewhere.

export interface Told {
  id: string | undefined;
  type: string;
  data: string;
}

/** Takes chunks of text, cut anywhere, and returns the complete events. */
export class EventReader {
  private rest = "";
  private type = "";
  private data: string[] = [];
  /** The last id received, with or without an event: where to resume. */
  place: string | undefined;

  read(text: string): Told[] {
    const lines = (this.rest + text).split(/\r\n|\n|\r/);
    this.rest = lines.pop() ?? "";
    const told: Told[] = [];
    for (const line of lines) {
      if (line === "") {
        if (this.data.length > 0)
          told.push({ id: this.place, type: this.type || "message", data: this.data.join("\n") });
        this.type = "";
        this.data = [];
        continue;
      }
      if (line.startsWith(":")) continue;
      const colon = line.indexOf(":");
      const name = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (name === "id") this.place = value;
      else if (name === "event") this.type = value;
      else if (name === "data") this.data.push(value);
    }
    return told;
  }
}
