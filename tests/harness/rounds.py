"""Messages of exchanges, made and recognised by their rounds."""

from common.study.messages import StepMessage


def say(name, *payload, study, step=0, peer=""):
    """Return a message of a round."""
    return StepMessage(study=study, step=step, round=name, peer=peer, payload=payload)


def of_round(message, *names):
    """Say whether a message is of one of these rounds."""
    return isinstance(message, StepMessage) and message.round in names


def moment(message):
    """Name a message: its round, or its kind."""
    return message.round if isinstance(message, StepMessage) else type(message)
