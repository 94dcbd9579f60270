package updateplan

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/updateplan/graph"
	"github.com/openshift/update-preflight/collector/words"
)

// The bounds of a stored plan.
const (
	maxStored  = 16 << 20
	maxUpdates = 1000
	maxPools   = 200
)

// Read reads a plan that was stored as JSON. The error states what is wrong with it.
func Read(r io.Reader) (Plan, error) {
	content, err := io.ReadAll(io.LimitReader(r, maxStored+1))
	if err != nil {
		return Plan{}, err
	}
	if len(content) > maxStored {
		return Plan{}, fmt.Errorf("the plan has more than %d bytes", maxStored)
	}
	var stored Plan
	if err := json.Unmarshal(content, &stored); err != nil {
		return Plan{}, fmt.Errorf("the plan is not JSON: %w", err)
	}
	if stored.APIVersion != report.APIVersion || stored.Kind != Kind {
		return Plan{}, fmt.Errorf("the document is %q %q, not %q %q",
			words.Line(stored.APIVersion, 64), words.Line(stored.Kind, 64), report.APIVersion, Kind)
	}
	return stored, stored.consistent()
}

// consistent returns an error for a plan that is too large or contradicts itself.
func (p Plan) consistent() error {
	if len(p.Updates) > maxUpdates {
		return fmt.Errorf("the plan has %d updates, more than %d", len(p.Updates), maxUpdates)
	}
	if len(p.Pools) > maxPools {
		return fmt.Errorf("the plan has %d pools, more than %d", len(p.Pools), maxPools)
	}
	if (p.Decision == NoPath) != (p.NoPath != nil) || p.NoPath != nil && len(p.Updates) > 0 {
		return fmt.Errorf("the plan contradicts itself: its decision is %q, and it has %s", words.Line(string(p.Decision), 64), words.Count(len(p.Updates), "update"))
	}
	if p.NoPath != nil {
		return nil
	}
	at := p.From
	for _, each := range p.Updates {
		if each.From != at || update.KindOf(each.From, each.To) == "" {
			return fmt.Errorf("the plan contradicts itself: an update from %q to %q follows %q",
				words.Line(each.From, 64), words.Line(each.To, 64), words.Line(at, 64))
		}
		at = each.To
	}
	if at != p.To {
		return errors.New("the plan contradicts itself: its updates do not end at its target")
	}
	// Earlier versions stored the decision of the risks alone.
	if decided := decide(p.Updates); p.Decision != decided && p.Decision != ofRisks(p.Updates) {
		return fmt.Errorf("the plan contradicts itself: its decision is %q, but its risks and findings make it %s", words.Line(string(p.Decision), 64), decided)
	}
	return nil
}

// Compare compares the rest of a stored plan with the graph and the cluster as they are now.
func (b Basis) Compare(stored Plan) Comparison {
	compared := Comparison{Time: stored.Time, Rest: []string{}, Changes: []Change{}}
	first := slices.IndexFunc(stored.Updates, func(each Update) bool { return each.From == b.From })
	switch {
	case stored.To == b.From:
		compared.Rest, compared.Holds = []string{b.From}, true
		return compared
	case first < 0:
		compared.add(LeftPath, "%s is not on the path of the stored plan from %s to %s", b.From, stored.From, stored.To)
		return compared
	}
	compared.Rest = append(compared.Rest, b.From)
	for _, each := range stored.Updates[first:] {
		compared.Rest = append(compared.Rest, each.To)
		b.compareUpdate(&compared, each)
	}
	compared.Holds = len(compared.Changes) == 0
	return compared
}

func (b Basis) compareUpdate(compared *Comparison, stored Update) {
	from, to := b.Graph.Find(stored.From), b.Graph.Find(stored.To)
	i := slices.IndexFunc(b.Graph.Updates, func(each graph.Update) bool { return each.From == from && each.To == to })
	if i < 0 {
		compared.add(UpdateGone, "the graph no longer has the update from %s to %s", stored.From, stored.To)
		return
	}
	if image := b.Graph.Releases[to].Image; image != stored.Image {
		compared.add(ImageChanged, "the image of %s is %s, and was %s", stored.To, image, stored.Image)
	}
	accepted := b.Accepted(stored.To)
	for _, risk := range b.Graph.Updates[i].Risks {
		_, isAccepted := accepted[risk.Name]
		wasOpen := slices.ContainsFunc(stored.Risks, func(before Risk) bool { return before.Name == risk.Name && before.Open })
		if applies := b.Assess(risk).Applies; !isAccepted && !wasOpen && applies != False {
			compared.add(RiskOpen, "the update from %s to %s has the open risk %s (applies: %s), which was not open",
				stored.From, stored.To, risk.Name, applies)
		}
	}
}

func (c *Comparison) add(reason ChangeReason, format string, args ...any) {
	c.Changes = append(c.Changes, Change{Reason: reason, Message: words.Line(fmt.Sprintf(format, args...), 1<<10)})
}
