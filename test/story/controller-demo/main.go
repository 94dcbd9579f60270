// Controller-demo shows the controller on a real cluster: it is installed from manifests/,
// an offered update is Blocked before it is selected, and Ready when it is selected after
// the remedies. With --switches, the selection is also guarded.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/test/installation"
	"github.com/openshift/update-preflight/test/openshift"
	"github.com/openshift/update-preflight/test/release"
	"github.com/openshift/update-preflight/test/story"
	"github.com/openshift/update-preflight/test/story/terminal"
)

const (
	namespace = "openshift-update-preflight"
	uninstall = "manifests/kubernetes/uninstall.yaml"
	// timeout bounds each wait for the controller.
	timeout = 2 * time.Minute
)

func main() {
	switches := flag.String("switches", "", "also show these switches, of "+strings.Join(supported(), ", ")+"; separated by commas")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, strings.FieldsFunc(*switches, func(r rune) bool { return r == ',' }))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// supported returns the switches that have an effect without CVO and the Prometheus operator.
func supported() []string { return []string{"cluster-operator", "admission-deny"} }

func run(ctx context.Context, switches []string) (err error) {
	for _, each := range switches {
		if !slices.Contains(supported(), each) {
			return fmt.Errorf("--switches: %q is not one of %q", each, supported())
		}
	}
	t, err := terminal.Open(ctx, os.Stdout, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close(ctx)) }()
	d := demo{Terminal: t, directory: filepath.Join(t.Directory, "install"), switches: switches}
	if err := d.prepare(ctx); err != nil {
		return err
	}
	return d.show(ctx)
}

// demo is one run of the demo.
type demo struct {
	*terminal.Terminal

	// directory is that of the kustomization of the administrator.
	directory string
	overlay   installation.Overlay
	switches  []string
}

// prepare makes the registry and the monitoring available to pods, and pushes the image.
func (d *demo) prepare(ctx context.Context) error {
	d.Step("mirroring the local registry for the pods")
	if err := installation.ConnectRegistry(ctx, d.Cluster); err != nil {
		return err
	}
	exposed, err := d.Cluster.Expose(ctx, strings.TrimPrefix(d.Monitoring.URL, "http://"))
	if err != nil {
		return err
	}
	d.Step("building the controller's image and pushing it to the local registry")
	image, err := installation.PushImage(ctx, &release.Binaries{}, d.Cluster.Registry)
	if err != nil {
		return err
	}
	d.overlay = installation.Overlay{Image: image, Args: []string{"--ahead-delay=0s", "--prometheus=http://" + exposed}}
	return os.Mkdir(d.directory, 0o750)
}

// show runs all parts of the story.
func (d *demo) show(ctx context.Context) error {
	for _, part := range []func(context.Context) error{d.install, d.checkOffered, d.guard, d.Follow, d.runAgain, d.selectUpdate, d.uninstall} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	fmt.Println()
	d.Step("done: Blocked before the update was selected, then Ready")
	return nil
}

func (d *demo) install(ctx context.Context) error {
	d.Title("The administrator installs the controller")
	return d.apply(ctx)
}

// apply applies the kustomization, and returns when the pod is ready.
func (d *demo) apply(ctx context.Context) error {
	if err := d.overlay.Write(d.Root, d.directory); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(d.directory, "kustomization.yaml"))
	if err != nil {
		return err
	}
	fmt.Printf("$ cat %s\n%s", filepath.Join(d.directory, "kustomization.yaml"), text)
	return d.runAll(ctx,
		[]string{"kubectl", "apply", "-k", d.directory},
		[]string{"kubectl", "rollout", "status", "-n", namespace, "deployment/update-preflight", "--timeout=2m"},
	)
}

// runAll runs programs of bin/, which must succeed.
func (d *demo) runAll(ctx context.Context, commands ...[]string) error {
	for _, command := range commands {
		if err := d.Run(ctx, terminal.Ready, command...); err != nil {
			return err
		}
	}
	return nil
}

// checkOffered waits for the verdict on the offered update.
func (d *demo) checkOffered(ctx context.Context) error {
	d.Title("No update is selected, but the offered update has a verdict")
	if err := d.await(ctx, record.Ahead); err != nil {
		return err
	}
	if err := d.runAll(ctx,
		[]string{"kubectl", "wait", "updatepreflight/" + story.To, "--for=condition=Ready=False", "--timeout=1m"},
		[]string{"kubectl", "get", "updatepreflights"},
		[]string{"oc-preflight", "history"},
	); err != nil {
		return err
	}
	return d.Run(ctx, terminal.Blocked, "oc-preflight", "status")
}

// await returns when the controller has completed a run for the requester.
func (d *demo) await(ctx context.Context, requester record.Requester) error {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if _, err := installation.AwaitRun(bounded, d.Cluster, story.To, requester); err != nil {
		return errors.Join(err, d.runAll(ctx, []string{"kubectl", "logs", "-n", namespace, "deployment/update-preflight"}))
	}
	d.Step(fmt.Sprintf("the controller has completed the preflight of %s (requester: %s)\n", story.To, requester))
	return nil
}

// guard turns the switches on, and shows that they block the update.
func (d *demo) guard(ctx context.Context) error {
	if len(d.switches) == 0 {
		return nil
	}
	d.Title("The administrator turns guards on")
	d.overlay.Switches = d.switches
	if err := d.apply(ctx); err != nil {
		return err
	}
	if slices.Contains(d.switches, "cluster-operator") {
		d.Title("The ClusterOperator blocks minor updates")
		if err := d.runAll(ctx, operatorWait("False"), operatorMessage()); err != nil {
			return err
		}
		fmt.Println()
	}
	if slices.Contains(d.switches, "admission-deny") {
		d.Title("The API server rejects the selection of an update that is Blocked")
		if err := d.Await(ctx, terminal.Failed, selection("--dry-run=server")...); err != nil {
			return err
		}
		return d.Run(ctx, terminal.Failed, selection()...)
	}
	return nil
}

// operatorWait returns the command that waits for this status of Upgradeable.
func operatorWait(status string) []string {
	return []string{"kubectl", "wait", "clusteroperator/update-preflight", "--for=condition=Upgradeable=" + status, "--timeout=2m"}
}

// operatorMessage returns the command that prints the message of Upgradeable.
func operatorMessage() []string {
	return []string{"kubectl", "get", "clusteroperator", "update-preflight", "-o", `jsonpath={.status.conditions[?(@.type=="Upgradeable")].message}`}
}

// selection returns the command that selects the update as "oc adm upgrade --to" does.
func selection(options ...string) []string {
	patch := `{"spec":{"desiredUpdate":{"version":"` + story.To + `"}}}`
	return append([]string{"kubectl", "patch", "clusterversion", "version", "--type=merge", "-p", patch}, options...)
}

// runAgain runs the preflight again as the administrator. Otherwise the guards block the
// update until the controller repeats it, within an hour.
func (d *demo) runAgain(ctx context.Context) error {
	if len(d.switches) == 0 {
		return nil
	}
	d.Title("The administrator runs the preflight again before selecting the update")
	if err := d.Run(ctx, terminal.Ready, "oc-preflight", "run", "--to", story.To, "--prometheus", d.Monitoring.URL); err != nil {
		return err
	}
	if slices.Contains(d.switches, "cluster-operator") {
		if err := d.runAll(ctx, operatorWait("True"), operatorMessage()); err != nil {
			return err
		}
		fmt.Println()
	}
	return d.Await(ctx, terminal.Ready, selection("--dry-run=server")...)
}

// selectUpdate selects the update, and waits for the verdict on it.
func (d *demo) selectUpdate(ctx context.Context) error {
	d.Title("The administrator selects the update, and the controller checks it at once")
	if err := d.runAll(ctx, selection()); err != nil {
		return err
	}
	d.Step("marking the selection as processed, in place of CVO, which this cluster does not have")
	if err := openshift.Observe(ctx, d.Cluster.Config); err != nil {
		return err
	}
	if err := d.await(ctx, record.BySelection); err != nil {
		return err
	}
	return d.runAll(ctx,
		[]string{"kubectl", "wait", "updatepreflight/" + story.To, "--for=condition=Ready", "--timeout=1m"},
		[]string{"oc-preflight", "history"}, []string{"oc-preflight", "status"},
	)
}

func (d *demo) uninstall(ctx context.Context) error {
	d.Title("One command uninstalls the controller, its guards first; the records remain")
	return d.runAll(ctx,
		[]string{"kubectl", "delete", "--ignore-not-found", "-f", uninstall},
		[]string{"oc-preflight", "history"},
	)
}
