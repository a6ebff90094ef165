import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(1)
print("Keras", keras.__version__, "on", keras.backend.backend())

images, labels = load_digits(return_X_y=True)
images = images.reshape(-1, 8, 8, 1).astype("float32") / 16
order = np.random.permutation(len(images))
images, labels = images[order], labels[order]

model = keras.Sequential(
    [
        keras.Input((8, 8, 1)),
        layers.Conv2D(16, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dense(10, activation="softmax"),
    ]
)
model.summary()
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
os.makedirs("saved", exist_ok=True)
model.fit(
    images[:1400],
    labels[:1400],
    batch_size=32,
    epochs=3,
    validation_data=(images[1400:], labels[1400:]),
    callbacks=[
        keras.callbacks.CSVLogger("saved/training.log.csv"),
        keras.callbacks.ModelCheckpoint("saved/weights.{epoch:02d}.keras"),
    ],
)
loss, accuracy = model.evaluate(images[1400:], labels[1400:], verbose=0)
print(f"Test accuracy: {accuracy:.3f}")
