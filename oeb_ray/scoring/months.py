"""The English names of months, whole and of three letters, in small letters, with their numbers."""

_NAMES = (
    "january jan,february feb,march mar,april apr,may,june jun,july jul,august aug,september sep,october oct,"
    "november nov,december dec"
)
MONTHS = {name: number for number, names in enumerate(_NAMES.split(","), start=1) for name in names.split()}
