"""Support vector machine on the digits of scikit-learn."""

from pathlib import Path

import joblib
from sklearn import metrics, svm
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
grid = GridSearchCV(make_pipeline(StandardScaler(), svm.SVC()), {"svc__C": [1, 10]}, cv=2, verbose=2, n_jobs=2)
grid.fit(X_train, y_train)
print("Best parameters:", grid.best_params_)
print(metrics.classification_report(y_test, grid.predict(X_test)))
Path("models").mkdir(exist_ok=True)
joblib.dump(grid.best_estimator_, "models/svm.joblib")
