// An evaluation of a keypoint finder: which class objects were taken for. All else stands in the page.
import { drawConfusion } from "../confusion.js";

drawConfusion(JSON.parse(document.getElementById("evaluation-data").textContent).confusion);
