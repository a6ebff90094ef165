// An evaluation of an anomaly detector: good and bad images, and what they were taken for. All else stands in the page.
import { drawConfusion } from "../confusion.js";

drawConfusion(JSON.parse(document.getElementById("evaluation-data").textContent).confusion);
