"""A training run from beginning to end, which shows how it goes."""

from weft._weft._nn import History, Trainer


def train(run, data, steps=None, *, folder="", rows=64):
    """Takes steps of a run, shows its progress, and returns the History, which a notebook shows as a page with curves.

    steps    how many more; None: as many as the run has left
    folder   where the log, the page and the run are written; empty: nowhere
    rows     of validation at the end; 0: none

    A KeyboardInterrupt ends it between two steps: the run is saved, and the interrupt raised again. nn.Run.load(folder) continues it.
    """
    from os import makedirs
    from time import monotonic

    from weft.display import Shown

    if steps is None:
        if run.steps == 0:
            raise ValueError("nn.train: the run has no number of steps: give steps, here or to the Run")
        steps = run.steps - run.steps_taken
    if folder:
        makedirs(folder, exist_ok=True)
    trainer, history, shown = Trainer(run, data), History(run, folder), Shown()
    begin, first, logged, mean = monotonic(), run.steps_taken, float("-inf"), None

    def speed():
        return (run.steps_taken - first) * trainer.tokens_in_step() / max(monotonic() - begin, 1e-9)

    def saved():
        trainer.sync()
        if folder:
            history.write_page()
            run.save(folder)

    try:
        for taken in range(steps):
            clock = 0.0 if run.steps else taken / steps
            rate = trainer.rate(clock)
            loss = trainer.step(clock)
            mean = loss if mean is None else mean + (loss - mean) / min(taken + 1, 50)
            if taken < 20 or monotonic() - logged > 0.25 or taken + 1 == steps:
                logged = monotonic()
                history.add(run.steps_taken, loss=loss, rate=rate, tokens_per_second=speed())
            if shown.due() or taken + 1 == steps:
                line = f"step {run.steps_taken} of {first + steps}   mean loss {mean:.4f}   rate {rate:.2e}   {speed():,.0f} tokens/s"
                shown.show(line, f'<progress value="{taken + 1}" max="{steps}"></progress> {line}')
        if rows and steps > 0:
            history.add(run.steps_taken, validation_loss=trainer.validate(rows).loss)
    finally:
        shown.end()
        saved()
    return history
