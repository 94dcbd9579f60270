package graph

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
)

// The bounds of one graph. The largest public one has 227 releases, 12 989 updates and
// 0.4 MB.
const (
	MaxBytes    = 16 << 20
	MaxReleases = 20_000
	MaxUpdates  = 2_000_000
)

const maxNotices = 20

// The names of risks are restricted by the API (ConditionalUpdateRisk.name).
var riskName = regexp.MustCompile(`^[A-Z][A-Za-z0-9.-]*$`)

type document struct {
	Nodes []struct {
		Version  string            `json:"version"`
		Payload  string            `json:"payload"`
		Metadata map[string]string `json:"metadata"`
	} `json:"nodes"`
	Edges       [][2]int    `json:"edges"`
	Conditional []riskGroup `json:"conditionalEdges"`
}

type riskGroup struct {
	Edges []struct {
		From string `json:"from"`
		To   string `json:"to"`
	} `json:"edges"`
	Risks []struct {
		Name    string `json:"name"`
		Message string `json:"message"`
		URL     string `json:"url"`
		Rules   []struct {
			Type   string `json:"type"`
			PromQL *struct {
				PromQL string `json:"promql"`
			} `json:"promql"`
		} `json:"matchingRules"`
	} `json:"risks"`
}

// Parse reads a graph as an update service serves it. The source is its name, such as
// the channel. The error is an *Error.
func Parse(source string, content []byte) (*Graph, error) {
	refuse := func(reason Cause, format string, args ...any) error {
		return &Error{Source: source, Reason: reason, message: fmt.Sprintf(format, args...)}
	}
	if len(content) > MaxBytes {
		return nil, refuse(TooLarge, "has %d bytes, more than %d", len(content), MaxBytes)
	}
	var parsed document
	if err := json.NewDecoder(bytes.NewReader(content)).Decode(&parsed); err != nil {
		return nil, refuse(Malformed, "is not a JSON document of an update service: %v", err)
	}
	if len(parsed.Nodes) > MaxReleases {
		return nil, refuse(TooLarge, "has %d releases, more than %d", len(parsed.Nodes), MaxReleases)
	}
	if count := parsed.updates(); count > MaxUpdates {
		return nil, refuse(TooLarge, "has %d updates, more than %d", count, MaxUpdates)
	}
	b := builder{graph: &Graph{sources: map[string][]string{}}, source: []string{source}, refuse: refuse}
	if err := b.add(parsed); err != nil {
		return nil, err
	}
	return b.graph, nil
}

func (d document) updates() int {
	count := len(d.Edges)
	for _, group := range d.Conditional {
		count += len(group.Edges)
	}
	return count
}

type builder struct {
	graph  *Graph
	source []string
	refuse func(reason Cause, format string, args ...any) error
	// position is the index of each node in the sorted releases.
	position []int
	byName   map[string]int
	edges    []edge
	// groups are the risks of the groups of conditional updates.
	groups [][]Risk
}

type edge struct {
	from, to int
	// group is an index of groups, or recommended.
	group int
}

const recommended = -1

func (b *builder) add(parsed document) error {
	if err := b.addReleases(parsed); err != nil {
		return err
	}
	b.edges = make([]edge, 0, parsed.updates())
	for _, ends := range parsed.Edges {
		for _, end := range ends {
			if end < 0 || end >= len(b.position) {
				return b.refuse(InvalidEdge, "has an update with the index %d of its %d releases", end, len(b.position))
			}
		}
		b.addEdge(edge{b.position[ends[0]], b.position[ends[1]], recommended})
	}
	b.addConditional(parsed.Conditional)
	slices.SortFunc(b.edges, func(x, y edge) int {
		return cmp.Or(cmp.Compare(x.from, y.from), cmp.Compare(x.to, y.to), cmp.Compare(x.group, y.group))
	})
	b.addUpdates()
	slices.SortFunc(b.graph.Notices, func(a, c Notice) int { return strings.Compare(a.Message, c.Message) })
	return nil
}

// addUpdates makes one update of the edges with the same releases: a conditional update
// takes precedence over a recommended one.
func (b *builder) addUpdates() {
	edges := slices.Compact(b.edges)
	b.graph.Updates = make([]Update, 0, len(edges))
	for i := 0; i < len(edges); {
		same := i + 1
		for same < len(edges) && edges[same].from == edges[i].from && edges[same].to == edges[i].to {
			same++
		}
		last := edges[same-1]
		update := Update{From: last.from, To: last.to, Sources: b.source}
		if last.group != recommended {
			update.Risks = b.groups[last.group]
		}
		switch ambiguous := same > i+1 && edges[same-2].group != recommended; {
		case ambiguous:
			b.note(AmbiguousRisks, "the update from %s to %s is in two groups of conditional updates, and CVO ignores it",
				b.graph.Releases[last.from].Version, b.graph.Releases[last.to].Version)
		case last.group == recommended || len(update.Risks) > 0:
			b.graph.Updates = append(b.graph.Updates, update)
		}
		i = same
	}
}

func (b *builder) addReleases(parsed document) error {
	order := make([]int, len(parsed.Nodes))
	releases := make([]Node, len(parsed.Nodes))
	for i, node := range parsed.Nodes {
		version, err := semver.Parse(node.Version)
		if err != nil {
			return b.refuse(InvalidVersion, "has the release %q, which is not a semantic version", words.Line(node.Version, 64))
		}
		order[i] = i
		releases[i] = Node{Release: update.Release{Version: node.Version, Image: node.Payload}, Parsed: version, Errata: node.Metadata["url"]}
		if channels := node.Metadata["io.openshift.upgrades.graph.release.channels"]; channels != "" {
			releases[i].Channels = strings.Split(channels, ",")
		}
		if releases[i].Digest() == "" {
			b.note(NoImage, "%s has no image by digest", node.Version)
		}
	}
	slices.SortFunc(order, func(i, j int) int { return compare(releases[i], releases[j]) })
	b.position, b.byName = make([]int, len(order)), make(map[string]int, len(order))
	for sorted, i := range order {
		if _, twice := b.byName[releases[i].Version]; twice {
			return b.refuse(DuplicateVersion, "has the release %s twice", releases[i].Version)
		}
		b.position[i], b.byName[releases[i].Version] = sorted, sorted
		b.graph.Releases = append(b.graph.Releases, releases[i])
		b.graph.sources[releases[i].Version] = b.source
	}
	return nil
}

// addEdge adds an update that is one hop, to a release with an image. The image of the release
// that it starts from, which runs already, is not needed.
func (b *builder) addEdge(added edge) {
	start, end := &b.graph.Releases[added.from], &b.graph.Releases[added.to]
	switch {
	case added.from == added.to:
		b.note(SelfEdge, "%s has an update to itself", start.Version)
	case end.Digest() == "":
	case !oneHop(start.Parsed, end.Parsed):
		b.note(NotOneHop, "the update from %s to %s is to an older release, or skips a minor version", start.Version, end.Version)
	default:
		b.edges = append(b.edges, added)
	}
}

func (b *builder) addConditional(groups []riskGroup) {
	for i, group := range groups {
		b.groups = append(b.groups, b.risks(group))
		if len(group.Risks) == 0 && len(group.Edges) > 0 {
			b.note(NoRisks, "the conditional update from %q to %q has no risk, so that it is unknown whether it is recommended",
				words.Line(group.Edges[0].From, 64), words.Line(group.Edges[0].To, 64))
		}
		for _, ends := range group.Edges {
			from, hasFrom := b.byName[ends.From]
			to, hasTo := b.byName[ends.To]
			if !hasFrom || !hasTo {
				b.note(UnknownRelease, "the conditional update from %q to %q names a "+
					"release that the graph does not contain", words.Line(ends.From, 64),
					words.Line(ends.To, 64))
				continue
			}
			b.addEdge(edge{from, to, i})
		}
	}
}

func (b *builder) risks(group riskGroup) []Risk {
	risks := make([]Risk, 0, len(group.Risks))
	for _, risk := range group.Risks {
		if !riskName.MatchString(risk.Name) {
			b.note(InvalidRiskName, "the risk %q has a name that cannot be accepted", words.Line(risk.Name, 64))
		}
		found := Risk{Name: risk.Name, Message: risk.Message, URL: risk.URL}
		for _, rule := range risk.Rules {
			converted := Rule{Type: rule.Type}
			if rule.PromQL != nil {
				converted.PromQL = rule.PromQL.PromQL
			}
			found.Rules = append(found.Rules, converted)
		}
		risks = append(risks, found)
	}
	return risks
}

func (b *builder) note(reason Cause, format string, args ...any) {
	if len(b.graph.Notices) < maxNotices {
		b.graph.Notices = append(b.graph.Notices, Notice{Reason: reason, Message: fmt.Sprintf(format, args...)})
	}
}
