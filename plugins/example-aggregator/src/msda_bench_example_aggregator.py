from msda_bench.api import Aggregate, Aggregator, Positive, component, hookimpl


@component
class InverseRisk(Aggregator):
    """Weights each source by 1 / (g + floor) with g = risk + mu gap; halving the bound term doubles the weight."""

    name = "inverse_risk"
    floor: Positive = 0.01

    def __call__(self, risks, gaps, mu, state):
        g = risks + mu * gaps
        weights = (g.detach().clamp(min=0) + self.floor).log().neg().softmax(-1)
        return Aggregate((weights * g).sum(), weights, state)


@hookimpl
def msda_aggregators():
    return [InverseRisk]
