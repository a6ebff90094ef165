"""SDK for training scripts: `import aip`.

Standard library only, Python 3.9 or newer. In a job the functions write files that the platform reads: no network,
no credentials. Outside of a job (on a laptop, in a test) the same calls print what they would record. No function
ends a training: what cannot be recorded is one line of the log.

    import aip

    for step, batch in enumerate(batches):
        loss = train_step(batch)
        aip.report(step, {"train/loss": loss})
        if aip.should_stop():
            break
    aip.checkpoint(step, {"model.pt": model.state_dict()}, metric=accuracy)

`aip.callbacks` has the same in one line for Lightning, Transformers, Keras, XGBoost and Ultralytics.
"""

from training.presets.run import keep_to_share as keep_to_share
from training.presets.run import log_line as log_line
from training.presets.run import should_stop as should_stop

from . import callbacks as callbacks
from .inputs import dataset as dataset
from .inputs import datasets as datasets
from .inputs import in_job as in_job
from .inputs import params as params
from .loop_profile import profile as profile
from .media import audio as audio
from .media import embedding as embedding
from .media import figure as figure
from .media import histogram as histogram
from .media import image as image
from .media import table as table
from .media import text as text
from .media import video as video
from .reporting import report as report
from .states import checkpoint as checkpoint
from .states import restored as restored
