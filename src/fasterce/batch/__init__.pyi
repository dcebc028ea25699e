from .report import BatchReport as BatchReport
from .runner import BatchProgress as BatchProgress
from .runner import explain as explain
