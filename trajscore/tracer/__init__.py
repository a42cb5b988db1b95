"""From runs of steps to confidences and to the risk of failure."""
from trajscore.tracer._scorer import TracerScorer
from trajscore.tracer._signals import TracerSignals
from trajscore.tracer._grid import score_grid
from trajscore.tracer._embedders import make_embedder, WordLlamaEmbedder, SentenceTransformerEmbedder
from trajscore.tracer._tail import tail_risk
