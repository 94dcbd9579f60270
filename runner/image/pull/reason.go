package pull

import "github.com/openshift/update-preflight/collector/finding"

var (
	reasonNothingToPull = finding.NewReason("NothingToPull", finding.Explanation{
		Meaning: "Reported when there are no images to pull.",
		Cause:   "The release has no check that runs.",
	})
	reasonNoNode = finding.NewReason("NoNode", finding.Explanation{
		Meaning: "Reported when images cannot be pulled onto any node.",
		Cause:   "All nodes are cordoned, not ready, or short of disk space.",
		Remedy:  "Provide a node that is ready, schedulable and has free disk space.",
		Command: "oc get nodes",
	})
	reasonNodeCordoned = finding.NewReason("NodeCordoned", finding.Explanation{
		Meaning: "Reported when images are not pulled onto cordoned nodes.",
		Cause:   "The nodes are marked as unschedulable.",
		Remedy:  "None is needed; uncordon a node to include it: `oc adm uncordon NODE`.",
	})
	reasonNodeNotReady = finding.NewReason("NodeNotReady", finding.Explanation{
		Meaning: "Reported when images are not pulled onto nodes that are not ready.",
		Cause:   "The kubelet of the node is stopped, failing or unreachable.",
		Remedy:  "Restore the node: `oc describe node NODE`.",
	})
	reasonImagesPulled = finding.NewReason("ImagesPulled", finding.Explanation{
		Meaning: "Reported when nodes have all images.",
		Cause:   "The images were pulled, or were present before.",
	})
	reasonImagePullFailed = finding.NewReason("ImagePullFailed", finding.Explanation{
		Meaning: "Reported when a node cannot pull an image, and a retry cannot succeed.",
		Cause:   "The image is missing, or the node may not pull it.",
		Remedy:  "Fix what the message names, then run the preflight again.",
	})
	reasonImagePullFailing = finding.NewReason("ImagePullFailing", finding.Explanation{
		Meaning: "Reported when a node could not pull an image in time, and a retry may succeed.",
		Cause:   "The registry or the network fails temporarily.",
		Remedy:  "Fix what the message names, then run the preflight again.",
	})
	reasonImagePullNotTried = finding.NewReason("ImagePullNotTried", finding.Explanation{
		Meaning: "Reported when a node did not try to pull all images.",
		Cause:   "The Job or its pod was not started, was evicted, or exceeded the deadline.",
		Remedy:  "Fix what the message names, or run the preflight again with a longer timeout.",
	})
	reasonDiskPressure = finding.NewReason("DiskPressure", finding.Explanation{
		Meaning: "Reported when nodes have the condition DiskPressure; no image is pulled onto them.",
		Cause:   "The disk of the node is almost full.",
		Remedy:  "Remove unused images and pods, or enlarge the disk.",
	})
	reasonDiskTooSmall = finding.NewReason("DiskTooSmall", finding.Explanation{
		Meaning: "Reported when nodes have less free space for images than the compressed images need; no image is pulled onto them.",
		Cause:   "The disk of the node is too small or too full.",
		Remedy:  "Remove unused images and pods, or enlarge the disk.",
	})
	reasonDiskSpaceLow = finding.NewReason("DiskSpaceLow", finding.Explanation{
		Meaning: "Reported when the free space of nodes may be too small for the unpacked images.",
		Cause:   "Unpacked layers need several times the space of compressed ones.",
		Remedy:  "Remove unused images and pods, or enlarge the disk.",
	})
	reasonDiskSpace = finding.NewReason("DiskSpace", finding.Explanation{
		Meaning: "Reported when no node is known to be short of disk space.",
		Cause:   "No node has the condition DiskPressure, and all known free space is sufficient.",
	})
)
