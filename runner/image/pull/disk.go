package pull

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/finding"
)

const (
	ReasonDiskPressure finding.Reason = "DiskPressure"
	ReasonDiskTooSmall finding.Reason = "DiskTooSmall"
	ReasonDiskSpaceLow finding.Reason = "DiskSpaceLow"
	ReasonDiskSpace    finding.Reason = "DiskSpace"
)

const (
	// diskName is the name of findings about disk space.
	diskName = "NodeDiskSpace"
	// unpacked is how much larger layers are on a disk than compressed.
	unpacked = 3
	// lookingAtOnce bounds how many kubelets are asked at one time.
	lookingAtOnce = 16
	// askTime is how long a kubelet may take to answer.
	askTime = 10 * time.Second
)

// summary is what matters here of a kubelet's stats/summary
// (k8s.io/kubelet/pkg/apis/stats/v1alpha1).
type summary struct {
	Node struct {
		Runtime struct {
			ImageFs struct {
				AvailableBytes *uint64 `json:"availableBytes"`
			} `json:"imageFs"`
		} `json:"runtime"`
	} `json:"node"`
}

// lookAtDisks returns the nodes that images may be pulled onto, and what is to be
// said about the disks of all: the condition DiskPressure, and where the kubelet
// may be asked the space that it has for images. bytes is what the images take
// compressed.
func (n Nodes) lookAtDisks(ctx context.Context, nodes []corev1.Node, bytes int64) ([]string, []finding.Finding) {
	free := make([]*uint64, len(nodes))
	var group errgroup.Group
	group.SetLimit(lookingAtOnce)
	for i := range nodes {
		group.Go(func() error {
			free[i] = n.free(ctx, nodes[i].Name)
			return nil
		})
	}
	_ = group.Wait() // what is not known is nil
	var room, unknown []string
	d := disks{need: uint64(max(0, bytes))}
	for i := range nodes {
		name := nodes[i].Name
		switch {
		case has(&nodes[i], corev1.NodeDiskPressure):
			d.pressed = append(d.pressed, name)
			continue
		case free[i] == nil:
			unknown = append(unknown, name)
		case *free[i] < d.need:
			d.full = append(d.full, name)
			continue
		case *free[i]/unpacked < d.need:
			d.tight = append(d.tight, name)
		}
		room = append(room, name)
	}
	d.known = len(nodes) - len(unknown) - len(d.pressed)
	return room, d.findings(len(nodes))
}

// free is the space for images on a node; nil when it is not known.
func (n Nodes) free(ctx context.Context, node string) *uint64 {
	answer, err := n.Client.CoreV1().RESTClient().Get().Resource("nodes").Name(node).SubResource("proxy").Suffix("stats", "summary").
		Timeout(askTime).DoRaw(ctx)
	var said summary
	if err != nil || json.Unmarshal(answer, &said) != nil {
		return nil
	}
	return said.Node.Runtime.ImageFs.AvailableBytes
}

// disks is what is known of them.
type disks struct {
	need                 uint64
	pressed, full, tight []string
	// known counts the nodes whose free space is known.
	known int
}

func (d disks) findings(nodes int) []finding.Finding {
	need := fmt.Sprintf("%.1f MiB", float64(d.need)/(1<<20))
	evidence := map[string]string{"compressedBytes": strconv.FormatUint(d.need, 10), "nodes": strconv.Itoa(nodes), "nodesWithKnownSpace": strconv.Itoa(d.known)}
	var findings []finding.Finding
	add := func(names []string, f finding.Finding) {
		if len(names) == 0 {
			return
		}
		f.Message = some(names) + ": " + f.Message
		findings = append(findings, f.Named(diskName).About(objects(names)...).Observed(evidence).
			Remedy("Free space on the node: remove unused images and pods, or give the node a larger disk.").
			Do(finding.Run("oc get --raw /api/v1/nodes/%s/proxy/stats/summary", names[0])))
	}
	add(d.pressed, finding.Fail(ReasonDiskPressure, "the node is short of disk space (condition DiskPressure); no image was pulled"))
	add(d.full, finding.Fail(ReasonDiskTooSmall, "less space is free for images than the %s that they take compressed; no image was pulled", need))
	add(d.tight, finding.Warn(ReasonDiskSpaceLow, "the space that is free for images may be too small for the %s that they take compressed, once they are unpacked", need))
	if len(findings) == 0 && nodes > 0 {
		return []finding.Finding{finding.Pass(ReasonDiskSpace,
			"none of %d nodes is short of disk space; %d of them are known to have room for the %s that the images take compressed", nodes, d.known, need).
			Named(diskName).Observed(evidence)}
	}
	return findings
}
