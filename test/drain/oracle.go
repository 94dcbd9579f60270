// Package drain answers: is the rehearsal of an update's drains right?
//
// A trial makes the cluster of a seed (package lab) of simulated nodes, rehearses its drains
// (collector/drain), and then drains the nodes in the order of the machine-config-operator: the pods
// are evicted under the real API server, controllers and scheduler. Package reference drains many more
// clusters, and these too, without a server; that it can end as these did is tested here. The nodes of
// several clusters are those of one control plane, apart by a label. Operators that move their pods do
// not run here: collector/drain has their objects in a table.
package drain

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/drain/comparison"
	"github.com/openshift/update-preflight/test/drain/lab"
	"github.com/openshift/update-preflight/test/drain/reference"
)

// Oracle drains the nodes of a control plane, which was started with QuickScheduler.
type Oracle struct {
	Clients kubernetes.Interface

	plane *cluster.Cluster
}

// On makes an oracle that drains on this control plane.
func On(c *cluster.Cluster) *Oracle {
	config := rest.CopyConfig(c.Config)
	config.QPS = -1 // no limit
	config.ContentType = "application/vnd.kubernetes.protobuf"
	return &Oracle{Clients: kubernetes.NewForConfigOrDie(config), plane: c}
}

// Verdict is how the rehearsal of a cluster compares with its drains.
type Verdict struct {
	Seed uint64
	// Pools are counted by what was predicted of them.
	Pools comparison.Count
	// Wrong are the disagreements, in words, and Sample in how many orders the reference has some.
	Wrong  []string
	Sample comparison.Sample
	// Unforeseen is how the drains ended, if the reference does not foresee it.
	Unforeseen string
	// State is where the pods are before and after the drains, if something is wrong.
	State string
}

// Failed reports whether the rehearsal or the reference is wrong: a rehearsal may lack what few orders
// lead to.
func (v *Verdict) Failed() bool {
	return v.Unforeseen != "" || len(v.Wrong) > 0 && !v.Sample.Rare()
}

// String is a line of the table.
func (v *Verdict) String() string {
	line := fmt.Sprintf("seed %d: predicted %d pools clear, %d sticking, %d unknown", v.Seed, v.Pools.Clear, v.Pools.Sticks, v.Pools.Unknown)
	if len(v.Wrong) > 0 {
		line += fmt.Sprintf("; wrong: %s (%s)", strings.Join(v.Wrong, "; "), v.Sample)
	}
	if v.Unforeseen != "" {
		line += "; not foreseen by the reference: " + v.Unforeseen
	}
	return line
}

// trial is one cluster.
type trial struct {
	*Oracle

	created lab.Cluster
}

// Trial drains the cluster of a seed, compares, and removes it.
func (o *Oracle) Trial(ctx context.Context, seed uint64) (Verdict, error) {
	t := &trial{Oracle: o, created: lab.Random(seed)}
	if err := t.create(ctx); err != nil {
		return Verdict{}, fmt.Errorf("create the cluster of seed %d: %w", seed, err)
	}
	before, err := t.read(ctx)
	if err != nil {
		return Verdict{}, fmt.Errorf("read the cluster of seed %d: %w", seed, err)
	}
	predicted, err := comparison.Of(before)
	if err != nil {
		return Verdict{}, fmt.Errorf("rehearse the drains of seed %d: %w", seed, err)
	}
	ended, err := t.drain(ctx, predicted.Order)
	if err != nil {
		return Verdict{}, fmt.Errorf("drain the cluster of seed %d: %w", seed, err)
	}
	found := Verdict{Seed: seed, Pools: predicted.Count(), Wrong: predicted.Wrong(ended)}
	if err := t.refer(&found, before, predicted, ended); err != nil {
		return Verdict{}, err
	}
	after, err := t.read(ctx)
	if err != nil {
		return Verdict{}, fmt.Errorf("read the cluster of seed %d: %w", seed, err)
	}
	found.State = before.String() + "\nthen\n" + after.String()
	return found, t.remove(ctx)
}

// refer compares how the drains ended with what the reference foresees.
func (t *trial) refer(found *Verdict, before lab.Cluster, predicted comparison.Prediction, ended lab.Outcome) error {
	settled, err := reference.Resume(t.created, before)
	if err != nil {
		return err
	}
	const orders = 500
	var foreseen comparison.Range
	random := rand.New(rand.NewPCG(found.Seed, 0)) //nolint:gosec // reproducible
	for range orders {
		other, err := settled.Drain(random)
		if err != nil {
			return err
		}
		found.Sample.Add(&predicted, other)
		foreseen.Add(other)
	}
	found.Unforeseen = foreseen.Excludes(ended)
	return nil
}
