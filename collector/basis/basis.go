// Package basis answers: what does a verdict rest on, and is it still so? A
// preflight is about the cluster as it was; whatever the update starts from may
// have changed since.
package basis

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/snapshot"
)

// MaxAge is how long a verdict holds when nothing ends it sooner. It is the
// threshold that openshift/enhancements#363 suggests.
const MaxAge = 24 * time.Hour

// Basis is what a verdict rests on: the kind and name of each thing, as in
// "Node worker-3", with its state.
type Basis map[string]string

// unknown begins the keys of kinds that could not be read; their state is why.
const unknown = "? "

// Read looks at the cluster. What cannot be read is in the Basis as not known,
// and then nobody can say that it has not changed.
func Read(ctx context.Context, cluster *snapshot.Cluster) Basis {
	b := Basis{}
	b.note("ClusterVersion", b.clusterVersion(ctx, cluster))
	b.note("ClusterOperator", b.operators(ctx, cluster))
	b.note("Node", b.nodes(ctx, cluster))
	b.note("CustomResourceDefinition", b.definitions(ctx, cluster))
	return b
}

func (b Basis) note(kind string, err error) {
	if err != nil && !apierrors.IsNotFound(err) {
		b[unknown+kind] = err.Error()
	}
}

func (b Basis) clusterVersion(ctx context.Context, cluster *snapshot.Cluster) error {
	found, err := cluster.ClusterVersion(ctx)
	if err != nil {
		return err
	}
	b["ClusterVersion "+found.Name] = found.Status.Desired.Version + " " + found.Status.Desired.Image
	return nil
}

func (b Basis) operators(ctx context.Context, cluster *snapshot.Cluster) error {
	operators, err := cluster.ClusterOperators(ctx)
	for _, operator := range operators {
		b["ClusterOperator "+operator.Name] = versionOf(operator)
	}
	return err
}

// versionOf is the version that the operator reports for itself.
func versionOf(operator configv1.ClusterOperator) string {
	for _, version := range operator.Status.Versions {
		if version.Name == "operator" {
			return version.Version
		}
	}
	return ""
}

func (b Basis) nodes(ctx context.Context, cluster *snapshot.Cluster) error {
	nodes, err := cluster.Nodes(ctx)
	for _, node := range nodes {
		b["Node "+node.Name] = node.Status.NodeInfo.KubeletVersion
	}
	return err
}

func (b Basis) definitions(ctx context.Context, cluster *snapshot.Cluster) error {
	definitions, err := cluster.CustomResourceDefinitions(ctx)
	for _, definition := range definitions {
		b["CustomResourceDefinition "+definition.Name] = string(definition.UID) + " generation " + strconv.FormatInt(definition.Generation, 10)
	}
	return err
}

// Changes says what is different now, sorted; nothing means that the verdict
// still rests on what it was made of. What could not be read, then or now, is
// among it: not known is not unchanged.
func (b Basis) Changes(now Basis) []string {
	var changes []string
	for _, key := range slices.Sorted(maps.Keys(union(b, now))) {
		kind, _, _ := strings.Cut(strings.TrimPrefix(key, unknown), " ")
		blind := cmp.Or(now[unknown+kind], b[unknown+kind])
		before, was := b[key]
		after, is := now[key]
		switch {
		case key == unknown+kind:
			changes = append(changes, fmt.Sprintf("whether a %s has changed is not known: %s", kind, blind))
		case blind != "":
		case !was:
			changes = append(changes, key+" is new")
		case !is:
			changes = append(changes, key+" is gone")
		case before != after:
			changes = append(changes, key+" has changed")
		}
	}
	return changes
}

func union(a, b Basis) Basis {
	all := maps.Clone(a)
	if all == nil {
		all = Basis{}
	}
	maps.Copy(all, b)
	return all
}
