// Package fingerprint answers: what does a verdict rest on, and is it still so? A
// preflight is about the cluster as it was; whatever the update starts from may
// have changed since.
package fingerprint

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

// Fingerprint is what a verdict rests on: the kind and name of each thing, as in
// "Node worker-3", with its state.
type Fingerprint map[string]string

// unknown begins the keys of kinds that could not be read; their state is why.
const unknown = "? "

// Read looks at the cluster. What cannot be read is in the Fingerprint as not known,
// and then nobody can say that it has not changed.
func Read(ctx context.Context, cluster *snapshot.Cluster) Fingerprint {
	f := Fingerprint{}
	f.note("ClusterVersion", f.clusterVersion(ctx, cluster))
	f.note("ClusterOperator", f.operators(ctx, cluster))
	f.note("Node", f.nodes(ctx, cluster))
	f.note("CustomResourceDefinition", f.definitions(ctx, cluster))
	return f
}

func (f Fingerprint) note(kind string, err error) {
	if err != nil && !apierrors.IsNotFound(err) {
		f[unknown+kind] = err.Error()
	}
}

func (f Fingerprint) clusterVersion(ctx context.Context, cluster *snapshot.Cluster) error {
	found, err := cluster.ClusterVersion(ctx)
	if err != nil {
		return err
	}
	f["ClusterVersion "+found.Name] = found.Status.Desired.Version + " " + found.Status.Desired.Image
	return nil
}

func (f Fingerprint) operators(ctx context.Context, cluster *snapshot.Cluster) error {
	operators, err := cluster.ClusterOperators(ctx)
	for _, operator := range operators {
		f["ClusterOperator "+operator.Name] = versionOf(operator)
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

func (f Fingerprint) nodes(ctx context.Context, cluster *snapshot.Cluster) error {
	nodes, err := cluster.Nodes(ctx)
	for _, node := range nodes {
		f["Node "+node.Name] = node.Status.NodeInfo.KubeletVersion
	}
	return err
}

func (f Fingerprint) definitions(ctx context.Context, cluster *snapshot.Cluster) error {
	definitions, err := cluster.CustomResourceDefinitions(ctx)
	for _, definition := range definitions {
		f["CustomResourceDefinition "+definition.Name] = string(definition.UID) + " generation " + strconv.FormatInt(definition.Generation, 10)
	}
	return err
}

// Changes says what is different now, sorted; nothing means that the verdict
// still rests on what it was made of. What could not be read, then or now, is
// among it: not known is not unchanged.
func (f Fingerprint) Changes(now Fingerprint) []string {
	var changes []string
	for _, key := range slices.Sorted(maps.Keys(union(f, now))) {
		kind, _, _ := strings.Cut(strings.TrimPrefix(key, unknown), " ")
		blind := cmp.Or(now[unknown+kind], f[unknown+kind])
		before, was := f[key]
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

func union(a, b Fingerprint) Fingerprint {
	all := maps.Clone(a)
	if all == nil {
		all = Fingerprint{}
	}
	maps.Copy(all, b)
	return all
}
