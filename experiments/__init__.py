"""Published results repeated: python -m experiments.NAME, figures and tables under experiments/results/NAME/."""
