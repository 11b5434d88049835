// How the dashboard is built: hashed names, files stored compressed, and the size of the first load printed.
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

/** Limit for the files that load before the first page, gzipped. */
const FIRST_LOAD_LIMIT = 300 * 1024;
const server = process.env.STEPWELL_URL ?? "http://127.0.0.1:7070";

/** Replaces compressible files with their `.gz`, the only form the binary embeds, and measures the first load. */
function compressed(): Plugin {
  return {
    name: "compressed",
    apply: "build",
    async closeBundle() {
      const dist = path.resolve("dist");
      const html = await readFile(path.join(dist, "index.html"), "utf8");
      const sizes = new Map<string, number>();
      for (const entry of await readdir(dist, { recursive: true, withFileTypes: true })) {
        const file = path.join(entry.parentPath, entry.name);
        if (!entry.isFile() || !/\.(js|css|html|svg)$/.test(file)) continue;
        const gzip = gzipSync(await readFile(file), { level: 9 });
        sizes.set(`/${path.relative(dist, file)}`, gzip.length);
        await writeFile(`${file}.gz`, gzip);
        await rm(file);
      }
      const first = [...html.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map((found) => found[1] ?? "");
      const total = ["/index.html", ...first].reduce((sum, name) => sum + (sizes.get(name) ?? 0), 0);
      console.log(`first load: ${(total / 1024).toFixed(1)} KB gzipped (limit ${FIRST_LOAD_LIMIT / 1024} KB)`);
      if (total > FIRST_LOAD_LIMIT) throw new Error("the first load is too large: load something lazily");
    },
  };
}

export default defineConfig({
  plugins: [react(), compressed()],
  // Nothing is inlined as data: the Content-Security-Policy allows scripts and styles from files only.
  build: { target: "es2022", assetsInlineLimit: 0, modulePreload: { polyfill: false }, chunkSizeWarningLimit: 700 },
  test: { include: ["tests/**/*.test.ts", "src/**/*.test.ts"] },
  server: {
    proxy: {
      // The server accepts a cookie only from a page of its own host, so the proxy sends that origin.
      "^/(api|sign-in|docs|openapi.json|in|wh)(/|$)": {
        target: server,
        ws: true,
        changeOrigin: true,
        configure: (proxy) => {
          proxy.on("proxyReq", (request) => request.setHeader("origin", server));
          proxy.on("proxyReqWs", (request) => request.setHeader("origin", server));
        },
      },
    },
  },
});
