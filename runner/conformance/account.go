package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/rights"
	"github.com/openshift/update-preflight/runner/conformance/requirement"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch/accountcopy"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// readAccounts reads the rights that the checks' accounts have beyond any account: rights from the copies of roles and
// bindings that the attempt created, and, for a ServiceAccount of the cluster, the rights of the original, which its
// copy lacks.
func (s *session) readAccounts(ctx context.Context, plan jobplan.Plan) error {
	accounts := accountcopy.Of(plan)
	names := make([]types.NamespacedName, 0, len(accounts))
	for _, account := range accounts {
		name := account.Name
		if account.Copied {
			name = account.Author
		}
		names = append(names, types.NamespacedName{Namespace: account.Namespace, Name: name})
	}
	found, err := rights.Writes(ctx, s.config.Kubernetes, names)
	if err != nil {
		return err
	}
	s.results.mutex.Lock()
	defer s.results.mutex.Unlock()
	for i, account := range accounts {
		for _, check := range account.Checks {
			s.results.accounts[check] = found[i]
			s.results.reading[check] = bound(plan, account.Namespace, account.Name)
		}
	}
	return nil
}

// bound is true when a binding of the plan grants the account rights.
func bound(plan jobplan.Plan, namespace, name string) bool {
	for _, object := range plan.Supporting {
		var subjects []rbacv1.Subject
		switch binding := object.(type) {
		case *rbacv1.RoleBinding:
			subjects = binding.Subjects
		case *rbacv1.ClusterRoleBinding:
			subjects = binding.Subjects
		}
		for _, subject := range subjects {
			if subject.Kind == rbacv1.ServiceAccountKind && subject.Namespace == namespace && subject.Name == name {
				return true
			}
		}
	}
	return false
}

const labelConformance = "preflight.openshift.io/conformance"

type namespaces struct {
	client  kubernetes.Interface
	id      string
	created []string
}

// make creates the missing namespaces of the plan.
// A preflight creates none, but a manifest may be tested before its operator exists.
func (n *namespaces) make(ctx context.Context, plan jobplan.Plan, progress func(string)) error {
	for _, name := range namespacesOf(plan) {
		_, err := n.client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			continue
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("could not get namespace %q: %w", name, err)
		}
		progress("creating namespace " + name)
		if err := n.makeOne(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// makeOne creates a namespace and waits until pods can be created in it.
func (n *namespaces) makeOne(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{labelConformance: n.id}}}
	if _, err := n.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("could not create namespace %q: %w", name, err)
	}
	n.created = append(n.created, name)
	err := wait.PollUntilContextTimeout(ctx, pollInterval, cleanupTimeout, true, func(ctx context.Context) (bool, error) {
		_, err := n.client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("namespace %q has no ServiceAccount \"default\": %w", name, err)
	}
	return nil
}

const pollInterval = 200 * time.Millisecond

// remove deletes the created namespaces and waits until they are gone, also after an interruption.
func (n *namespaces) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	var failed error
	for _, name := range n.created {
		if err := n.client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			failed = errors.Join(failed, fmt.Errorf("could not delete namespace %q: %w", name, err))
		}
	}
	for _, name := range n.created {
		err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
			_, err := n.client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
			return apierrors.IsNotFound(err), nil
		})
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("namespace %q was not deleted in time: %w", name, err))
		}
	}
	return failed
}

func namespacesOf(plan jobplan.Plan) []string {
	var names []string
	for _, check := range plan.Checks {
		names = append(names, check.Job.Namespace)
	}
	for _, object := range plan.Supporting {
		if object.GetNamespace() != "" {
			names = append(names, object.GetNamespace())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

type trial struct {
	name string
	// describe completes "running …".
	describe string
	// change applies the restriction; the check is the first container.
	change func(pod *corev1.PodSpec)
	// stop stops the pods after they have run for a while.
	stop bool
	// inspect is called while the objects of the attempt exist; optional.
	inspect func(ctx context.Context, plan jobplan.Plan) error
}

func first(inspect func(context.Context, jobplan.Plan) error) []trial {
	return []trial{
		{name: requirement.AsIs, describe: "the check unchanged", inspect: inspect},
		{name: requirement.Killed, describe: "the check, then killing it", stop: true, change: func(pod *corev1.PodSpec) {
			setEnvironment(pod, "KUBERNETES_SERVICE_HOST", silentHost)
			// Kept where the cluster has ContainerStopSignals, else dropped.
			pod.OS = &corev1.PodOS{Name: corev1.Linux}
			pod.Containers[0].Lifecycle = &corev1.Lifecycle{StopSignal: new(corev1.SIGKILL)}
		}},
		{name: requirement.Terminated, describe: "the check, then terminating it", stop: true, change: func(pod *corev1.PodSpec) {
			setEnvironment(pod, "KUBERNETES_SERVICE_HOST", silentHost)
		}},
	}
}

const (
	// silentHost is an unassigned address (RFC 5737): a check waits there for the API server.
	silentHost = "192.0.2.1"
	// closedHost is an address without an API server.
	closedHost = "127.0.0.1"
)

func compared() []trial {
	return []trial{
		{name: requirement.Again, describe: "the check again"},
		{name: requirement.NonRoot, describe: "the check as a user other than root", change: func(pod *corev1.PodSpec) {
			secure(pod, func(security *corev1.SecurityContext) { security.RunAsNonRoot = new(true) })
		}},
		{name: requirement.ReadOnly, describe: "the check on a read-only file system", change: func(pod *corev1.PodSpec) {
			secure(pod, func(security *corev1.SecurityContext) { security.ReadOnlyRootFilesystem = new(true) })
		}},
		{name: requirement.Memory, describe: "the check with " + requirement.MemoryLimit + " of memory", change: func(pod *corev1.PodSpec) {
			limit := resource.MustParse(requirement.MemoryLimit)
			resources := &pod.Containers[0].Resources
			if wanted, ok := resources.Requests[corev1.ResourceMemory]; ok && wanted.Cmp(limit) > 0 {
				resources.Requests[corev1.ResourceMemory] = limit
			}
			if resources.Limits == nil {
				resources.Limits = corev1.ResourceList{}
			}
			resources.Limits[corev1.ResourceMemory] = limit
		}},
		{
			name: requirement.Budget, describe: fmt.Sprintf("the check with %d bytes for its result", requirement.SmallBudget),
			change: func(pod *corev1.PodSpec) {
				setEnvironment(pod, "PREFLIGHT_RESULT_BYTES", strconv.Itoa(requirement.SmallBudget))
			},
		},
		{name: requirement.CutOff, describe: "the check without an API server", change: func(pod *corev1.PodSpec) {
			setEnvironment(pod, "KUBERNETES_SERVICE_HOST", closedHost)
		}},
	}
}

func secure(pod *corev1.PodSpec, change func(*corev1.SecurityContext)) {
	container := &pod.Containers[0]
	if container.SecurityContext == nil {
		container.SecurityContext = &corev1.SecurityContext{}
	}
	change(container.SecurityContext)
}

func setEnvironment(pod *corev1.PodSpec, name, value string) {
	container := &pod.Containers[0]
	container.Env = slices.DeleteFunc(container.Env, func(variable corev1.EnvVar) bool { return variable.Name == name })
	container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: value})
}

// prepare applies the restriction. There is only one pod, and it ends soon after it is deleted.
func (t trial) prepare(check jobplan.Check) {
	check.Job.Spec.BackoffLimit = new(int32(0))
	pod := &check.Job.Spec.Template.Spec
	pod.TerminationGracePeriodSeconds = new(int64(requirement.StopSeconds))
	if t.change != nil {
		t.change(pod)
	}
}

func readPod(ctx context.Context, client kubernetes.Interface, check jobplan.Check) (requirement.Attempt, error) {
	pods, err := podsOf(ctx, client, check)
	if err != nil || len(pods) == 0 {
		return requirement.Attempt{}, err
	}
	newest := slices.MaxFunc(pods, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	left := requirement.Observe(check, newest)
	if left.End == nil {
		return left, nil
	}
	log, err := logOf(ctx, client, newest, check.Job.Spec.Template.Spec.Containers[0].Name)
	if err != nil {
		return requirement.Attempt{}, err
	}
	return left.Logged(check, log), nil
}

func podsOf(ctx context.Context, client kubernetes.Interface, check jobplan.Check) ([]corev1.Pod, error) {
	selection := ofRun(check.Job.Labels[label.Run])
	selection.LabelSelector += "," + labels.Set{"job-name": check.Job.Name}.String()
	pods, err := client.CoreV1().Pods(check.Job.Namespace).List(ctx, selection)
	if err != nil {
		return nil, fmt.Errorf("could not list the pods of Job %q: %w", check.Job.Name, err)
	}
	return pods.Items, nil
}

func ofRun(run string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: labels.Set{label.Run: run}.String()}
}

// logOf returns the first maxLog+1 bytes of the check's log.
func logOf(ctx context.Context, client kubernetes.Interface, pod corev1.Pod, container string) ([]byte, error) {
	stream, err := client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: container, LimitBytes: new(int64(requirement.MaxLog + 1)),
	}).Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("could not read the log of pod %q: %w", pod.Name, err)
	}
	text, err := io.ReadAll(io.LimitReader(stream, requirement.MaxLog+1))
	if err := errors.Join(err, stream.Close()); err != nil {
		return nil, fmt.Errorf("could not read the log of pod %q: %w", pod.Name, err)
	}
	return text, nil
}
