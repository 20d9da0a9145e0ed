# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Keras 3 over several workers: fit, evaluate and predict, and backups that ranks agree on."""

import contextlib
import functools
import importlib.metadata
import json
import os
import shutil

from tensord_say import say

BACKUPS_KEPT = 2  # Ranks are at most one save apart: each all-reduce holds the others up.
AGREE_SECONDS = 600  # For the slowest rank to come to its fit.


def keras_version():
    return importlib.metadata.version("keras")


def mend_keras(module):
    """fit, evaluate and predict of Keras 3 under MultiWorkerMirroredStrategy."""
    import tensorflow as tf
    from keras.src import tree  # `keras` itself is not whole yet: this runs inside its import.

    trainer = module.TensorFlowTrainer
    wanted = ("_collective_all_reduce_multi_worker", "reduce_per_replica")
    if not all(hasattr(module, name) for name in wanted) or not hasattr(
        trainer, "_maybe_symbolic_build"
    ):
        say(f"Keras {keras_version()} is unknown here: left as it is")
        return
    multi_worker = module._collective_all_reduce_multi_worker
    build_as_shipped = trainer._maybe_symbolic_build
    reduce_as_shipped = module.reduce_per_replica
    fit_as_shipped = trainer.fit

    def first_local(strategy, value):
        if isinstance(value, tf.distribute.DistributedValues):
            return strategy.experimental_local_results(value)[0]
        return value

    def build(self, iterator=None, data_batch=None):
        strategy = self._distribute_strategy
        if strategy is None or not multi_worker(strategy):
            return build_as_shipped(self, iterator=iterator, data_batch=data_batch)
        if iterator is not None:
            for _, _, batches in iterator:
                data_batch = next(batches)
                break
        # Shapes are all that building needs: no other rank has to be asked.
        data_batch = tree.map_structure(lambda v: first_local(strategy, v), data_batch)
        with strategy.scope():
            self._symbolic_build(data_batch=data_batch)
        return None

    def reduce(values, strategy, reduction):
        if not multi_worker(strategy) or reduction not in ("auto", "mean", "sum"):
            return reduce_as_shipped(values, strategy, reduction)
        how = "SUM" if reduction == "sum" else "MEAN"
        return tree.map_structure(lambda v: strategy.reduce(how, v, axis=None), values)

    @functools.wraps(fit_as_shipped)
    def fit(self, *args, **kwargs):
        if self._distribute_strategy is not None and multi_worker(self._distribute_strategy):
            given = args[5] if len(args) > 5 else kwargs.get("callbacks")
            AGREEMENT.next_fit(getattr(given, "callbacks", given))
        return fit_as_shipped(self, *args, **kwargs)

    trainer._maybe_symbolic_build = build
    trainer.fit = fit
    module.reduce_per_replica = reduce
    say(f"Keras {keras_version()}: fit, evaluate and predict work over several workers")


# ---- Backups -------------------------------------------------------------------------------------


def saved_numbers(folder):
    """The saves that are whole, by their numbers; the newest last."""
    with contextlib.suppress(FileNotFoundError):
        names = [name for name in os.listdir(folder) if name.isdigit()]
        return sorted(int(name) for name in names)
    return []


class Agreement:
    """Ranks tell each other, through TensorFlow's coordination service, which saves they have."""

    def __init__(self):
        self.fits = 0
        self.asked = 0  # Callbacks that asked in this fit.

    def next_fit(self, callbacks):
        """All ranks call it; one whose fit keeps no backup says so to those whose fit does."""
        self.fits, self.asked = self.fits + 1, 0
        if not isinstance(callbacks, (list, tuple)):
            callbacks = [callbacks]
        if not any(hasattr(callback, "_tensord_saves") for callback in callbacks):
            self._tell(_coordinator(), [])

    def newest_of_all(self, mine):
        """The newest save that every rank has; 0: none."""
        service = _coordinator()
        if service is None:  # Ranks that do not know each other.
            return max(mine, default=0)
        self._tell(service, mine)
        common = set(mine)
        for rank in set(range(int(os.environ["WORLD_SIZE"]))) - {int(os.environ["RANK"])}:
            # Bounded, though a rank that hangs is told earlier.
            found = service.get_config_key_value(self._key(rank), AGREE_SECONDS * 1000)
            common &= set(json.loads(found))
        self.asked += 1
        return max(common, default=0)

    def _key(self, rank):
        return f"tensord/backup/{self.fits}/{self.asked}/{rank}"

    def _tell(self, service, saves):
        if service is not None:
            key = self._key(int(os.environ["RANK"]))
            service.set_config_key_value(key, json.dumps(saves))


def _coordinator():
    from tensorflow.python.eager import context

    service = context.context()
    return service if service.coordination_service is not None else None


AGREEMENT = Agreement()


def write_through(folder):
    for name in [*os.listdir(folder), "."]:
        descriptor = os.open(os.path.join(folder, name), os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class Saves:
    """The saves of one BackupAndRestore, each a folder that appears whole: 1, 2, 3 …

    `root` is the folder that the user gave. A rank of several keeps its saves in rank_N there, one
    alone in `root` itself. Weights are the same on all ranks, so any rank's save serves all that
    can see it: the number of ranks may change between two starts.
    """

    def __init__(self, callback, root):
        self.callback = callback
        self.root = str(root)
        self.base = str(callback.backup_dir)
        self.last = 0

    def folders(self):
        """All that may have saves, this rank's own last."""
        others = []
        with contextlib.suppress(FileNotFoundError):
            others = sorted(name for name in os.listdir(self.root) if name.startswith("rank_"))
        found = [self.root, *(os.path.join(self.root, name) for name in others)]
        return [folder for folder in found if folder != self.base] + [self.base]

    def visible(self):
        """The saves that this rank can read, by number; its own where there are several."""
        return {
            number: os.path.join(folder, str(number))
            for folder in self.folders()
            for number in saved_numbers(folder)
        }

    def abandoned(self):
        """Folders of no rank that there is now: of a start with more ranks, or fewer."""
        world = int(os.environ.get("WORLD_SIZE", "1"))
        alive = [os.path.join(self.root, f"rank_{rank}") for rank in range(world)]
        return [f for f in self.folders() if f != self.base and (world == 1 or f not in alive)]

    def set_aside(self):
        """Saves that not all ranks can see are kept, under names that no start looks for."""
        for folder in [*self.abandoned(), self.base]:
            for number in saved_numbers(folder):
                aside = os.path.join(folder, f"unused_{number}")
                with contextlib.suppress(FileNotFoundError):  # Another rank was first.
                    shutil.rmtree(aside, ignore_errors=True)
                    os.rename(os.path.join(folder, str(number)), aside)

    def point_at(self, folder):
        """Lets Keras read and write there."""
        callback = self.callback
        callback.backup_dir = folder
        for name in [n for n in vars(callback) if n.endswith("_path")]:
            old = getattr(callback, name)
            setattr(callback, name, os.path.join(folder, os.path.basename(old)))

    def choose(self):
        """What all ranks can go on from; what only some have of newer ones is dropped."""
        seen = self.visible()
        self.last = AGREEMENT.newest_of_all(list(seen))
        if self.last:
            for number in saved_numbers(self.base):
                if number > self.last:
                    shutil.rmtree(os.path.join(self.base, str(number)))
            say(f"BackupAndRestore goes on from save {self.last}, which all ranks have")
        elif seen:
            self.set_aside()
            say(
                f"BackupAndRestore begins anew: some rank sees no save, or keeps no backup. Those "
                f"seen here, up to number {max(seen)}, stay in {self.root} as unused_N"
            )
        # Without one of ours, there may be one that Keras wrote elsewhere.
        self.point_at(seen.get(self.last, self.base))

    def end(self):
        """After Keras has removed this rank's folder, or kept it, as the user wants."""
        if not os.path.exists(self.base) and os.environ.get("RANK", "0") == "0":
            for folder in self.abandoned():
                if folder != self.root:
                    shutil.rmtree(folder, ignore_errors=True)
                for number in saved_numbers(folder):
                    shutil.rmtree(os.path.join(folder, str(number)), ignore_errors=True)

    def save(self, write):
        """`write` fills a folder that gets its number when all of it is on the disk."""
        part = os.path.join(self.base, "part")
        shutil.rmtree(part, ignore_errors=True)
        os.makedirs(part)
        self.point_at(part)
        write()
        write_through(part)
        self.last += 1
        done = os.path.join(self.base, str(self.last))
        os.rename(part, done)
        self.point_at(done)
        for number in saved_numbers(self.base)[:-BACKUPS_KEPT]:
            shutil.rmtree(os.path.join(self.base, str(number)))


def mend_backup(module):
    """BackupAndRestore: a folder for each rank, whole saves, a restart from one that all can see.

    As shipped, ranks overwrite and delete each other's files, and a kill between the file of the
    weights and that of the epoch makes an epoch count twice.
    """
    callback = module.BackupAndRestore
    wanted = ("__init__", "on_train_begin", "_save_model", "on_train_end")
    if not all(name in vars(callback) for name in wanted):
        say(f"Keras {keras_version()}: this BackupAndRestore is unknown here: left as it is")
        return
    rank, world = os.environ.get("RANK", "0"), int(os.environ.get("WORLD_SIZE", "1"))
    as_shipped = {name: vars(callback)[name] for name in wanted}

    def init(self, backup_dir, *args, **kwargs):
        root = backup_dir
        if world > 1 and backup_dir:
            backup_dir = os.path.join(backup_dir, f"rank_{rank}")
        as_shipped["__init__"](self, backup_dir, *args, **kwargs)
        # Only where a folder can be renamed in one step.
        self._tensord_saves = None if "://" in str(backup_dir) else Saves(self, root)

    def on_train_begin(self, logs=None):
        if self._tensord_saves is not None:
            self._tensord_saves.choose()
        as_shipped["on_train_begin"](self, logs)

    def save_model(self, *args, **kwargs):
        def write():
            as_shipped["_save_model"](self, *args, **kwargs)

        if self._tensord_saves is None:
            write()
        else:
            self._tensord_saves.save(write)

    def on_train_end(self, logs=None):
        if self._tensord_saves is not None:
            self.backup_dir = self._tensord_saves.base
        as_shipped["on_train_end"](self, logs)
        if self._tensord_saves is not None:
            self._tensord_saves.end()

    mended = {
        "__init__": init,
        "on_train_begin": on_train_begin,
        "_save_model": save_model,
        "on_train_end": on_train_end,
    }
    for name, function in mended.items():
        setattr(callback, name, function)
    say(f"Keras {keras_version()}: BackupAndRestore saves whole, and ranks resume together")
