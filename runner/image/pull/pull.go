// Package pull answers: can the nodes pull these images?
//
// Each schedulable, ready node runs one Job with a container for each image. The
// command of the containers does not exist, so no program of an image is started; a
// container that fails to start shows that the node has its image. No image is pulled
// onto a node that is short of disk space.
//
// The Jobs are built, validated and labeled like the Jobs of a release's checks, and are
// deleted by the cleanup of the run.
package pull

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/payload"
)

// Pull starts a Job on each node that pulls the images, which are pull specs by name
// of component, and waits for the results or the end of ctx. bytes is the compressed
// size of the images. It returns findings about disk space and about the images: one
// for each cause, with its nodes. The error comes from List.
func (n Nodes) Pull(ctx context.Context, images map[string]string, bytes int64) ([]finding.Finding, error) {
	nodes, err := n.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the nodes that pull images: %w", err)
	}
	eligible, findings := eligibleNodes(nodes)
	usable, diskFindings := n.checkDisks(ctx, eligible, bytes)
	findings = append(findings, diskFindings...)
	switch {
	case len(images) == 0:
		return append(findings, finding.Skipped(gap.Proven("the manifests of the release"), reasonNothingToPull,
			"there are no images to pull: the release has no checks to run").
			Named(Name)), nil
	case len(usable) == 0:
		return append(findings, finding.Unknown(reasonNoNode, "no node is ready, schedulable and has free disk space, so no image was pulled").
			Named(Name).
			Do(finding.Read("oc get nodes"))), nil
	}
	return append(findings, findingsOf(n.pullAll(ctx, usable, images), images)...), nil
}

// eligibleNodes returns the nodes that are ready and schedulable, and findings about
// the others. Windows nodes are ignored, since no release has images for them.
func eligibleNodes(nodes []corev1.Node) ([]corev1.Node, []finding.Finding) {
	var eligible []corev1.Node
	var cordoned, notReady []string
	for i := range nodes {
		node := &nodes[i]
		switch {
		case node.Status.NodeInfo.OperatingSystem == "windows":
		case node.Spec.Unschedulable:
			cordoned = append(cordoned, node.Name)
		case !hasCondition(node, corev1.NodeReady):
			notReady = append(notReady, node.Name)
		default:
			eligible = append(eligible, *node)
		}
	}
	var findings []finding.Finding
	if len(cordoned) > 0 {
		findings = append(findings, skipped(reasonNodeCordoned, "no image was pulled onto cordoned nodes", cordoned))
	}
	if len(notReady) > 0 {
		findings = append(findings, skipped(reasonNodeNotReady, "no image was pulled onto nodes that are not ready", notReady))
	}
	return eligible, findings
}

func skipped(reason finding.Reason, message string, nodes []string) finding.Finding {
	return finding.Skipped(gap.Proven("the conditions of the nodes"), reason, "%s: %s", message, words.List(nodes, mostNames)).
		Named(Name).
		About(objects(nodes)...)
}

func (n Nodes) pullAll(ctx context.Context, nodes []string, images map[string]string) []attempt {
	attempts := make([]attempt, len(nodes))
	var group errgroup.Group
	group.SetLimit(max(1, n.Parallelism))
	for i, node := range nodes {
		group.Go(func() error {
			attempts[i] = attempt{node: node, Result: n.pullOnto(ctx, n.draft(node, images))}
			return nil
		})
	}
	_ = group.Wait() // the results have the errors
	return attempts
}

// command is the path of a program that no image has.
const command = "/preflight-image-pull"

// draft is the plan for the Job of one node, which is validated against the same policy as the Jobs of a release.
func (n Nodes) draft(node string, images map[string]string) jobplan.Draft {
	return jobplan.New(n.Run.From, &payload.Release{
		Release: n.Run.Target, Images: images,
		Jobs: []payload.Job{{File: "image-references", Component: "image-pull", Job: job(node, images)}},
	})
}

// job is the Job that pulls images onto one node; it tolerates all taints. Its
// containers request minimal resources, since they do not run.
func job(node string, images map[string]string) *batchv1.Job {
	var containers []corev1.Container
	for i, component := range slices.Sorted(maps.Keys(images)) {
		containers = append(containers, corev1.Container{
			Name: fmt.Sprintf("image-%d", i), Image: images[component], ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{command},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse("1m"),
				corev1.ResourceMemory: resource.MustParse("1Mi"),
			}},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), RunAsNonRoot: new(true), ReadOnlyRootFilesystem: new(true),
				Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
		})
	}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "pull-" + node, Namespace: Namespace},
		Spec: batchv1.JobSpec{
			BackoffLimit: new(int32(0)),
			Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever, Containers: containers, AutomountServiceAccountToken: new(false),
					Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
					Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
						NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
							Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
						}}}},
					}}},
				},
			},
		},
	}
}

// Name names the findings about pulls by nodes.
var Name = finding.NewName("ImagePull", "The findings about the pulls of images by the nodes.")

// Namespace is the namespace of the Jobs: the namespace of the cluster-version operator, which pulls the release image
// there in the same way.
const Namespace = "openshift-cluster-version"

// mostNames bounds the nodes or images in a message.
const mostNames = 5

// Starter creates a Job and returns its UID. It is implemented by launch.Launcher.
type Starter interface {
	Start(ctx context.Context, check jobplan.Check) error
	UID(check jobplan.Check) types.UID
}

// Nodes are the nodes of a cluster.
type Nodes struct {
	Client kubernetes.Interface
	List   func(context.Context) ([]corev1.Node, error)
	Start  Starter
	Run    jobplan.Run
	// Parallelism bounds the nodes that pull concurrently.
	Parallelism int
}

func hasCondition(node *corev1.Node, condition corev1.NodeConditionType) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(each corev1.NodeCondition) bool {
		return each.Type == condition && each.Status == corev1.ConditionTrue
	})
}

func objects(nodes []string) []preflight.Object {
	var references []preflight.Object
	for _, node := range nodes[:min(len(nodes), mostNames)] {
		references = append(references, preflight.Object{APIVersion: "v1", Kind: "Node", Name: node})
	}
	return references
}

// retryTime is how long the kubelet may retry a failed pull that a retry can fix.
const retryTime = 90 * time.Second

// Result is the result of the pulls on one node.
type Result struct {
	Failed map[string]diagnosis.PullFailure
	// Incomplete is a clause about why the node did not try all images; empty when it did.
	Incomplete string
	// Remedy is an imperative sentence for Incomplete, or empty. Actions are its commands.
	Remedy  string
	Actions []finding.Action
}

type attempt struct {
	node string
	Result
}

// pullOnto starts the Job of one node and waits until the node has tried each image or ctx ends.
func (n Nodes) pullOnto(ctx context.Context, draft jobplan.Draft) Result {
	if len(draft.Checks) == 0 {
		return notStarted(draft.Refused[0])
	}
	check := draft.Bind(n.Run).Checks[0]
	if err := n.Start.Start(ctx, check); err != nil {
		return notStarted(launch.Explain(check, err))
	}
	last := Result{Incomplete: "the Job has no pod"}
	start := time.Now()
	_, err := watchtools.UntilWithSync(ctx, n.pods(check.Job.Namespace, n.Start.UID(check)), &corev1.Pod{}, nil,
		func(event watch.Event) (done bool, _ error) {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || event.Type == watch.Deleted {
				return false, nil
			}
			last, done = Read(pod, time.Since(start))
			return done, nil
		})
	if err != nil {
		last.Incomplete = "the pulls did not finish in time: " + cmp.Or(last.Incomplete, err.Error())
	}
	return last
}

// notStarted is the result of a node whose Job was not started, for the reason in the finding.
func notStarted(why finding.Finding) Result {
	return Result{Incomplete: why.Message, Remedy: why.Remediation, Actions: why.Actions}
}

func (n Nodes) pods(namespace string, job types.UID) *cache.ListWatch {
	client := n.Client.CoreV1().Pods(namespace)
	selector := labels.Set{batchv1.ControllerUidLabel: string(job)}.String()
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = selector
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = selector
			return client.Watch(ctx, options)
		},
	}
}

// Read returns the result of a pod whose Job was started before the given duration,
// and whether it is final: each image was pulled, failed permanently, or will not be
// tried.
func Read(pod *corev1.Pod, waited time.Duration) (result Result, done bool) {
	result = Result{Failed: map[string]diagnosis.PullFailure{}}
	tried := 0
	retrying := false
	for _, container := range pod.Status.ContainerStatuses {
		failure, failed := diagnosis.FailedPull(container)
		switch {
		case failed:
			result.Failed[pullSpecOf(pod, container.Name)] = failure
			retrying = retrying || !failure.Final && waited < retryTime
			tried++
		case pulled(container):
			tried++
		}
	}
	missing := len(pod.Spec.Containers) - tried
	if missing == 0 {
		return result, !retrying
	}
	result.Incomplete = fmt.Sprintf("not tried: %d of %s", missing, words.Count(len(pod.Spec.Containers), "image"))
	result.Remedy = "Read the events of the pod."
	result.Actions = []finding.Action{finding.Read("oc get events -n %s --field-selector involvedObject.name=%s", pod.Namespace, pod.Name)}
	if pod.Status.Phase == corev1.PodFailed {
		result.Incomplete += fmt.Sprintf(" before the pod ended (%s)", cmp.Or(pod.Status.Reason, "without a reason"))
		return result, true
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			result.Incomplete += ": the pod cannot be scheduled" + words.Aside(condition.Reason)
		}
	}
	return result, false
}

// pullSpecOf is the pull spec of a container in the Job; the one in its status may differ.
func pullSpecOf(pod *corev1.Pod, container string) string {
	for _, each := range pod.Spec.Containers {
		if each.Name == container {
			return each.Image
		}
	}
	return ""
}

// pulled reports whether the node has the image of a container: the kubelet pulls it
// before all other steps of the start (pkg/kubelet/kuberuntime, startContainer).
func pulled(container corev1.ContainerStatus) bool {
	if waiting := container.State.Waiting; waiting != nil {
		switch waiting.Reason {
		case "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "PreCreateHookError", "PreStartHookError",
			"CrashLoopBackOff":
			return true
		}
		return false
	}
	if ended := container.State.Terminated; ended != nil {
		// A kubelet also reports a termination of a container that never existed.
		return container.ImageID != "" || ended.ContainerID != ""
	}
	return container.State.Running != nil
}

var diskName = finding.NewName("NodeDiskSpace", "The findings about the disk space of nodes for images.")

const (
	// unpackedRatio is the assumed size of unpacked layers relative to compressed ones.
	unpackedRatio = 3
	// diskParallelism bounds the concurrent requests to kubelets.
	diskParallelism = 16
	// kubeletTimeout bounds a request to a kubelet.
	kubeletTimeout = 10 * time.Second
)

// summary has the fields of a kubelet's stats/summary that are read (k8s.io/kubelet/pkg/apis/stats/v1alpha1).
type summary struct {
	Node struct {
		Runtime struct {
			ImageFs struct {
				AvailableBytes *uint64 `json:"availableBytes"`
			} `json:"imageFs"`
		} `json:"runtime"`
	} `json:"node"`
}

// checkDisks returns the names of the nodes that images may be pulled onto, and
// findings about the disks of all nodes. It reads the condition DiskPressure and,
// where the kubelet permits, the free space for images. bytes is the compressed size
// of the images.
func (n Nodes) checkDisks(ctx context.Context, nodes []corev1.Node, bytes int64) ([]string, []finding.Finding) {
	free := n.freeSpace(ctx, nodes)
	var usable []string
	d := disks{needed: uint64(max(0, bytes))}
	for i := range nodes {
		name := nodes[i].Name
		switch {
		case hasCondition(&nodes[i], corev1.NodeDiskPressure):
			d.pressure = append(d.pressure, name)
			continue
		case free[i] == nil:
			usable = append(usable, name)
			continue
		case *free[i] < d.needed:
			d.known++
			d.tooSmall = append(d.tooSmall, name)
			continue
		case *free[i]/unpackedRatio < d.needed:
			d.low = append(d.low, name)
		}
		d.known++
		usable = append(usable, name)
	}
	return usable, d.findings(len(nodes))
}

// freeSpace returns the free space for images of each node in bytes; nil when it is unknown.
func (n Nodes) freeSpace(ctx context.Context, nodes []corev1.Node) []*uint64 {
	free := make([]*uint64, len(nodes))
	var group errgroup.Group
	group.SetLimit(diskParallelism)
	for i := range nodes {
		group.Go(func() error {
			free[i] = n.freeSpaceOf(ctx, nodes[i].Name)
			return nil
		})
	}
	_ = group.Wait() // no error is returned
	return free
}

func (n Nodes) freeSpaceOf(ctx context.Context, node string) *uint64 {
	response, err := n.Client.CoreV1().RESTClient().Get().Resource("nodes").Name(node).SubResource("proxy").Suffix("stats", "summary").
		Timeout(kubeletTimeout).DoRaw(ctx)
	var parsed summary
	if err != nil || json.Unmarshal(response, &parsed) != nil {
		return nil
	}
	return parsed.Node.Runtime.ImageFs.AvailableBytes
}

type disks struct {
	// needed is the compressed size of the images in bytes.
	needed                  uint64
	pressure, tooSmall, low []string
	// known counts the nodes without DiskPressure whose free space is known.
	known int
}

func (d disks) findings(nodes int) []finding.Finding {
	needed := fmt.Sprintf("%.1f MiB", float64(d.needed)/(1<<20))
	evidence := map[string]string{
		"compressedBytes": strconv.FormatUint(d.needed, 10), "nodes": strconv.Itoa(nodes),
		"nodesWithKnownSpace": strconv.Itoa(d.known),
	}
	var findings []finding.Finding
	add := func(names []string, f finding.Finding) {
		if len(names) == 0 {
			return
		}
		f.Message = words.List(names, mostNames) + ": " + f.Message
		findings = append(findings, f.Named(diskName).About(objects(names)...).Observed(evidence).
			Remedy("Free space on the node: remove unused images and pods, or enlarge its disk.").
			Do(finding.Read("oc get --raw /api/v1/nodes/%s/proxy/stats/summary", names[0])))
	}
	add(d.pressure, finding.Fail(reasonDiskPressure, "the node has the condition DiskPressure; no image was pulled onto it"))
	add(d.tooSmall, finding.Fail(reasonDiskTooSmall,
		"the free space for images is less than their compressed size of %s; no image was pulled onto the node", needed))
	add(d.low, finding.Warn(reasonDiskSpaceLow,
		"the free space for images may be too small for the unpacked images; their compressed size is %s", needed))
	if len(findings) == 0 && nodes > 0 {
		return []finding.Finding{finding.Pass(gap.Proven("the conditions of the nodes"), reasonDiskSpace,
			"none of %s has the condition DiskPressure; %d are known to have enough space for the images (compressed size %s)",
			words.Count(nodes, "node"), d.known, needed).
			Named(diskName).Observed(evidence)}
	}
	return findings
}
