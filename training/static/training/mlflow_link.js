// Links of MLflow's clients: "#/experiments/3/runs/ID" leads to the run, any other fragment to the experiments.
const match = /^#\/experiments\/[^/]+\/runs\/([0-9a-f]{32})\b/.exec(location.hash);
if (match) location.replace(`/experiments/runs/by-id/${match[1]}/`);
else if (location.hash) location.replace("/experiments/");
