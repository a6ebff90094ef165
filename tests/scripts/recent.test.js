// What the palette remembers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { recent, recentFirst, remember } from "../../aiplatform/static/base/recent.js";

const page = (url) => ({ name: url, kind: "Page", icon: "list", url });

test("what was opened last stands first, once, and old ones are forgotten", () => {
  localStorage.clear();
  for (let number = 0; number < 12; number++) remember(page(`/jobs/${number}/`));
  remember(page("/jobs/5/"));

  const urls = recent().map(({ url }) => url);
  assert.deepEqual(urls.slice(0, 2), ["/jobs/5/", "/jobs/11/"]);
  assert.equal(urls.length, 8);
  assert.equal(new Set(urls).size, 8);
});

test("results that were opened before come first, the others keep their order", () => {
  const results = ["/a/", "/b/", "/c/", "/d/"].map(page);
  const opened = [page("/d/"), page("/b/")];

  assert.deepEqual(recentFirst(results, opened).map(({ url }) => url), ["/d/", "/b/", "/a/", "/c/"]);
});

test("what somebody else stored is no address outside of the platform", () => {
  localStorage.setItem("aip.recent.", JSON.stringify([page("javascript:alert(1)"), { url: 7 }, null, page("/ok/")]));
  assert.deepEqual(recent().map(({ url }) => url), ["/ok/"]);

  localStorage.setItem("aip.recent.", "{no json");
  assert.deepEqual(recent(), []);
});
