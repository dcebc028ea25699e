"""Other libraries: the scikit-learn transformer interface and MLflow."""
