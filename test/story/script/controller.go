package script

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/test/exit"
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

// Switches returns the switches that have an effect without CVO and the Prometheus operator.
func Switches() []string { return []string{"cluster-operator", "admission-deny"} }

// CheckSwitches returns an error for switches that are not of Switches.
func CheckSwitches(switches []string) error {
	for _, each := range switches {
		if !slices.Contains(Switches(), each) {
			return fmt.Errorf("%q is not one of %q", each, Switches())
		}
	}
	return nil
}

// Controller shows the controller: an offered update is Blocked before it is selected, and
// Ready when it is selected after the remedies.
type Controller struct {
	*terminal.Terminal

	// directory is that of the kustomization of the administrator.
	directory string
	overlay   installation.Overlay
	switches  []string
}

// NewController makes the registry and the monitoring available to pods, and pushes the image
// of the controller. It also shows these switches.
func NewController(ctx context.Context, t *terminal.Terminal, switches ...string) (*Controller, error) {
	c := &Controller{Terminal: t, directory: filepath.Join(t.Directory, "install"), switches: switches}
	return c, c.prepare(ctx)
}

// prepare makes the registry and the monitoring available to pods, and pushes the image.
func (c *Controller) prepare(ctx context.Context) error {
	c.Step("mirroring the local registry for the pods")
	if err := installation.ConnectRegistry(ctx, c.Cluster); err != nil {
		return err
	}
	exposed, err := c.Cluster.Expose(ctx, strings.TrimPrefix(c.Monitoring, "http://"))
	if err != nil {
		return err
	}
	c.Step("building the controller's image and pushing it to the local registry")
	image, err := installation.PushImage(ctx, &release.Binaries{}, c.Cluster.Registry)
	if err != nil {
		return err
	}
	c.overlay = installation.Overlay{Image: image, Args: []string{"--ahead-delay=0s", "--prometheus=http://" + exposed}}
	return os.Mkdir(c.directory, 0o750)
}

// Update shows the installation, and all that leads to the selection of the update.
func (c *Controller) Update(ctx context.Context) error {
	for _, part := range []func(context.Context) error{c.install, c.checkOffered, c.guard, c.Follow, c.runAgain, c.selectUpdate} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (c *Controller) install(ctx context.Context) error {
	c.Title("The administrator installs the controller")
	return c.apply(ctx)
}

// apply applies the kustomization, and returns when the pod is ready.
func (c *Controller) apply(ctx context.Context) error {
	if err := c.overlay.Write(c.Root, c.directory); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(c.directory, "kustomization.yaml"))
	if err != nil {
		return err
	}
	c.Show(fmt.Sprintf("$ cat %s\n%s", filepath.Join(c.directory, "kustomization.yaml"), text))
	return c.runAll(ctx,
		[]string{"kubectl", "apply", "-k", c.directory},
		[]string{"kubectl", "rollout", "status", "-n", namespace, "deployment/update-preflight", "--timeout=2m"},
	)
}

// runAll runs programs of bin/, which must succeed.
func (c *Controller) runAll(ctx context.Context, commands ...[]string) error {
	for _, command := range commands {
		if err := c.Run(ctx, exit.Ready, command...); err != nil {
			return err
		}
	}
	return nil
}

// checkOffered waits for the verdict on the offered update.
func (c *Controller) checkOffered(ctx context.Context) error {
	c.Title("No update is selected, but the offered update has a verdict")
	if err := c.awaitRun(ctx); err != nil {
		return err
	}
	if err := c.runAll(ctx,
		[]string{"kubectl", "wait", "updatepreflight/" + story.To, "--for=condition=Ready=False", "--timeout=1m"},
		[]string{"kubectl", "get", "updatepreflights"},
		[]string{"oc-preflight", "history"},
	); err != nil {
		return err
	}
	return c.Run(ctx, exit.Blocked, c.status()...)
}

// awaitRun returns when the controller has completed a run of the offered update.
func (c *Controller) awaitRun(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if _, err := installation.AwaitRun(bounded, c.Cluster, story.To, record.Ahead); err != nil {
		return errors.Join(err, c.runAll(ctx, []string{"kubectl", "logs", "-n", namespace, "deployment/update-preflight"}))
	}
	c.Step(fmt.Sprintf("the controller has completed the preflight of %s (requester: %s)\n", story.To, record.Ahead))
	return nil
}

// guard turns the switches on, and shows that they block the update.
func (c *Controller) guard(ctx context.Context) error {
	if len(c.switches) == 0 {
		return nil
	}
	c.Title("The administrator turns guards on")
	c.overlay.Switches = c.switches
	if err := c.apply(ctx); err != nil {
		return err
	}
	if slices.Contains(c.switches, "cluster-operator") {
		c.Title("The ClusterOperator blocks minor updates")
		if err := c.runAll(ctx, operatorWait("False"), operatorMessage()); err != nil {
			return err
		}
		c.Show("\n")
	}
	if slices.Contains(c.switches, "admission-deny") {
		c.Title("The API server rejects the selection of an update that is Blocked")
		if err := c.Await(ctx, exit.Failed, selection("--dry-run=server")...); err != nil {
			return err
		}
		return c.Run(ctx, exit.Failed, selection()...)
	}
	return nil
}

// status returns the command that shows whether the update may start now.
func (c *Controller) status() []string {
	return []string{"oc-preflight", "status", "--to", story.To, "--prometheus", c.Monitoring}
}

// operatorWait returns the command that waits for this status of Upgradeable.
func operatorWait(status string) []string {
	return []string{"kubectl", "wait", "clusteroperator/update-preflight", "--for=condition=Upgradeable=" + status, "--timeout=2m"}
}

// operatorMessage returns the command that prints the message of Upgradeable.
func operatorMessage() []string {
	return []string{
		"kubectl", "get", "clusteroperator", "update-preflight", "-o",
		`jsonpath={.status.conditions[?(@.type=="Upgradeable")].message}`,
	}
}

// selection returns the command that selects the update as "oc adm upgrade --to" does.
func selection(options ...string) []string {
	patch := `{"spec":{"desiredUpdate":{"version":"` + story.To + `"}}}`
	return append([]string{"kubectl", "patch", "clusterversion", "version", "--type=merge", "-p", patch}, options...)
}

// runAgain runs the preflight again as the administrator. Otherwise the guards block the
// update until the controller repeats it, within a minute.
func (c *Controller) runAgain(ctx context.Context) error {
	if len(c.switches) == 0 {
		return nil
	}
	c.Title("The administrator runs the preflight again before selecting the update")
	if err := c.Run(ctx, exit.Ready, "oc-preflight", "run", "--to", story.To, "--prometheus", c.Monitoring); err != nil {
		return err
	}
	if slices.Contains(c.switches, "cluster-operator") {
		if err := c.runAll(ctx, operatorWait("True"), operatorMessage()); err != nil {
			return err
		}
		c.Show("\n")
	}
	return c.Await(ctx, exit.Ready, selection("--dry-run=server")...)
}

// selectUpdate selects the update, and waits until its verdict is Ready: the controller runs
// the preflight at once, unless it has found out that the remedies suffice.
func (c *Controller) selectUpdate(ctx context.Context) error {
	c.Title("The administrator selects the update, which the controller checks at once unless it is Ready")
	if err := c.runAll(ctx, selection()); err != nil {
		return err
	}
	c.Step("marking the selection as processed, in place of CVO, which this cluster does not have")
	if err := openshift.Observe(ctx, c.Cluster.Config); err != nil {
		return err
	}
	return c.runAll(ctx,
		[]string{"kubectl", "wait", "updatepreflight/" + story.To, "--for=condition=Ready", "--timeout=3m"},
		[]string{"oc-preflight", "history"}, c.status(),
	)
}

// Uninstall shows the uninstallation.
func (c *Controller) Uninstall(ctx context.Context) error {
	c.Title("One command uninstalls the controller, its guards first; the records remain")
	if err := c.runAll(ctx,
		[]string{"kubectl", "delete", "--ignore-not-found", "-f", uninstall},
		[]string{"oc-preflight", "history"},
	); err != nil {
		return err
	}
	c.Show("\n")
	c.Step("done: Blocked before the update was selected, then Ready")
	return nil
}
