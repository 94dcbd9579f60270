// Package drain answers: is the rehearsal of an update's drains right?
//
// A trial makes a cluster (package lab) of simulated nodes, calls oc-preflight drain-plan as a user
// does, and then drains the nodes as the machine-config-operator does: the pods are evicted under the
// real API server, controllers and scheduler. What happens must be among what the program has predicted.
// Clusters are drained in batches, with one call of the program for a batch: their nodes are those of
// one control plane, apart by a label, and their pools have the names of the clusters.
//
// The simulated nodes are those of test/cluster. What else is not in a plain Kubernetes is simulated
// here: the machine-config-operator, and operators that create their pods again.
package drain

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/drain"
	"github.com/openshift/update-preflight/collector/health/draining"
	"github.com/openshift/update-preflight/test/build"
	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/drain/comparison"
	"github.com/openshift/update-preflight/test/drain/lab"
	"github.com/openshift/update-preflight/test/openshift"
)

// Oracle drains the nodes of a control plane, which was started with QuickScheduler.
type Oracle struct {
	Clients kubernetes.Interface

	objects dynamic.Interface
	plane   *cluster.Cluster
	once    sync.Once
	failed  error
	program string
	watched *watched
}

// Options are those of a control plane for On, in a test of a folder below the root of the repository: with the
// resources of operators that are not run.
func Options() []cluster.Option {
	const rate, burst = 300, 600
	options := []cluster.Option{cluster.KWOK(1), cluster.ControllerRate(rate, burst), cluster.QuickScheduler()}
	root, err := build.Root()
	if err != nil {
		return options // Start returns it
	}
	var files []string
	for _, plural := range []string{"virtualmachineinstances", "kubevirts", "clusters", "statefulsets", "databases", "taskruns"} {
		files = append(files, filepath.Join(root, "test", "drain", "testdata", plural+".crd.yaml"))
	}
	return append(options, cluster.CRDs(files...))
}

// On makes an oracle that drains on this control plane.
func On(c *cluster.Cluster) *Oracle {
	config := rest.CopyConfig(c.Config)
	config.QPS = -1 // no limit
	config.WarningHandlerWithContext = rest.NoWarnings{}
	binary := rest.CopyConfig(config)
	binary.ContentType = "application/vnd.kubernetes.protobuf"
	return &Oracle{Clients: kubernetes.NewForConfigOrDie(binary), objects: dynamic.NewForConfigOrDie(config), plane: c}
}

// open makes what all batches share: the program, the watches, and the objects without which the program
// takes the control plane for none of OpenShift.
func (o *Oracle) open(ctx context.Context) error {
	o.once.Do(func() {
		ctx := context.WithoutCancel(ctx)
		if o.program, o.failed = build.Compile(ctx, "cmd/oc-preflight"); o.failed != nil {
			return
		}
		if o.failed = openshift.Apply(ctx, o.plane.Config,
			openshift.State{Version: "4.19.0", Image: "registry.example.com/release", Topology: "HighlyAvailable"}); o.failed != nil {
			return
		}
		if o.failed = o.refuseEvents(ctx); o.failed != nil {
			return
		}
		o.watched = o.watch(ctx)
	})
	return o.failed
}

// refuseEvents has the API server refuse Events, which nothing reads and which are a third of its writes.
func (o *Oracle) refuseEvents(ctx context.Context) error {
	const name = "drain-test-no-events"
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
					Rule: admissionregistrationv1.Rule{
						APIGroups: []string{"", "events.k8s.io"}, APIVersions: []string{"v1"},
						Resources: []string{"events"},
					},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{Expression: "false"}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	admission := o.Clients.AdmissionregistrationV1()
	if _, err := admission.ValidatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := admission.ValidatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{})
	return err
}

// predict calls the program.
func (o *Oracle) predict(ctx context.Context) (drain.Rehearsal, error) {
	//nolint:gosec // the program under test
	command := exec.CommandContext(ctx, o.program, "drain-plan", "-o", "json", "--kubeconfig", o.plane.Kubeconfig)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var found draining.Plan
	if json.Unmarshal(stdout.Bytes(), &found) != nil {
		return drain.Rehearsal{}, fmt.Errorf("drain-plan: %w\n%s%s", err, stdout.String(), stderr.String())
	}
	if len(found.Unread) > 0 {
		return drain.Rehearsal{}, fmt.Errorf("drain-plan has not read all: %v", found.Unread)
	}
	if wrong := comparison.Contradictions(&found); len(wrong) > 0 {
		return drain.Rehearsal{}, fmt.Errorf("drain-plan contradicts itself: %s", strings.Join(wrong, "; "))
	}
	return found.Rehearsal, nil
}

// Trial is one cluster, and what came of it.
type Trial struct {
	*Oracle

	Created   lab.Cluster
	Predicted comparison.Prediction
	Ended     lab.Outcome
	// Err is why it was not drained.
	Err error
	// Took is the time of the drains.
	Took time.Duration

	before, after lab.Cluster
	// backedOff are the Jobs whose back-off has ended without a new pod, with how many had failed then.
	backedOff map[string]int32
	// attached are the nodes of the volumes that one node has at a time, by claim.
	attached map[string]string
}

// Wrong are the disagreements, in words.
func (t *Trial) Wrong() []string { return t.Predicted.Wrong(t.Ended) }

// String is where the pods are before and after the drains.
func (t *Trial) String() string { return t.before.String() + "\nthen\n" + t.after.String() }

// Report gets what happens during a batch: a line about each part of it, and each cluster at its end, from
// several goroutines.
type Report struct {
	Log   func(format string, args ...any)
	Ended func(*Trial)
}

// Batch drains clusters at the same time, after one call of the program, and removes them.
func (o *Oracle) Batch(ctx context.Context, clusters []lab.Cluster, report Report) error {
	if err := o.open(ctx); err != nil {
		return err
	}
	trials := make([]*Trial, len(clusters))
	for i := range clusters {
		trials[i] = &Trial{Oracle: o, Created: clusters[i], backedOff: map[string]int32{}, attached: map[string]string{}}
	}
	step := report.step(fmt.Sprintf("%d clusters from %s on", len(clusters), clusters[0].Namespace))
	trials = report.each(trials, func(t *Trial) error { return t.create(ctx) })
	trials = report.each(trials, func(t *Trial) error { return t.begin(ctx) })
	step("created")
	predicted, err := o.predict(ctx)
	if err != nil {
		return err
	}
	step("predicted")
	report.each(trials, func(t *Trial) error {
		began := time.Now()
		t.Predicted = comparison.Extract(predicted, t.before)
		if err := t.drain(ctx); err != nil {
			return err
		}
		t.Took = time.Since(began)
		report.Ended(t)
		return t.remove(ctx)
	})
	step("drained")
	return nil
}

// step returns a function that logs how long a part has taken.
func (r Report) step(of string) func(part string) {
	last := time.Now()
	return func(part string) {
		r.Log("%s: %s in %s", of, part, seconds(time.Since(last)))
		last = time.Now()
	}
}

func seconds(took time.Duration) time.Duration { return took.Round(time.Second / 10) } //nolint:mnd // a tenth of a second

// each calls a function for all trials, at the same time, reports those for which it fails, and returns the
// others.
func (r Report) each(trials []*Trial, do func(*Trial) error) []*Trial {
	var group errgroup.Group
	for _, t := range trials {
		group.Go(func() error {
			if t.Err = do(t); t.Err != nil {
				r.Ended(t)
			}
			return nil
		})
	}
	_ = group.Wait() // each has its error
	return slices.DeleteFunc(trials, func(t *Trial) bool { return t.Err != nil })
}
