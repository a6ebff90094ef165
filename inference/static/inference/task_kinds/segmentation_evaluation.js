// An evaluation of a segmenter: the confusion of its pixels. All else stands in the page.
import { drawConfusion } from "../confusion.js";

drawConfusion(JSON.parse(document.getElementById("evaluation-data").textContent).confusion);
