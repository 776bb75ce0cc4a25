package provider

// What an EC2 instance leaves: images with their snapshots, EBS volumes that do not
// end with it, and Elastic IPs, which cost whether they are used or not.

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// A public IPv4 address costs half a cent an hour, in use or not, in every region:
// https://aws.amazon.com/vpc/pricing/
func awsAddress() *big.Rat { return big.NewRat(5*hoursInMonth, 1000) }

const awsNameLength = 128

type awsImage struct {
	ID    string `xml:"imageId"`
	Name  string `xml:"name"`
	State string `xml:"imageState"`
	Why   string `xml:"stateReason>message"`
	Disks []struct {
		Snapshot string `xml:"ebs>snapshotId"`
		Size     int64  `xml:"ebs>volumeSize"`
	} `xml:"blockDeviceMapping>item"`
}

// snapshots are those that hold the image's disks.
func (im awsImage) snapshots() []string {
	var ids []string
	for _, d := range im.Disks {
		if d.Snapshot != "" {
			ids = append(ids, d.Snapshot)
		}
	}
	return ids
}

func (e ec2) images(ctx context.Context, region string, in ...string) ([]awsImage, error) {
	return awsList[awsImage](ctx, e, region, "DescribeImages", "imagesSet", in...)
}

// named finds an own image by its name, of which there is one a region.
func (e ec2) named(ctx context.Context, region, name string) (Snapshot, bool, error) {
	found, err := e.images(ctx, region, "Owner.1", "self", "Filter.1.Name", "name", "Filter.1.Value.1", name)
	if err != nil || len(found) == 0 {
		return Snapshot{}, false, err
	}
	return Snapshot{ID: region + "/" + text(found[0].ID), Name: text(found[0].Name), Currency: "USD"}, true, nil
}

// snapshot makes an image without a reboot, which would end what runs there: what
// the system has not written yet is not in it.
func (e ec2) snapshot(ctx context.Context, in Instance, name string) (Snapshot, error) {
	region, own := placed(in.ID)
	name = imageName(name, own, awsNameLength)
	named := func() (Snapshot, bool, error) { return e.named(ctx, region, name) }
	return imaged(region, name, "USD", named, func() (string, error) {
		body, err := e.act(ctx, region, "CreateImage", "InstanceId", own, "Name", name, "NoReboot", "true", "Description", "made by rentop before a release")
		if err != nil {
			return "", err
		}
		var answer struct {
			ID string `xml:"imageId"`
		}
		err = awsAnswer("CreateImage", body, &answer)
		return answer.ID, err
	})
}

// snapshotState: an image is available once the snapshots of its disks are whole.
// One without any has its data nowhere.
func (e ec2) snapshotState(ctx context.Context, id string) (SnapshotState, error) {
	if why := checkPlaced(id, "ami-"); why != "" {
		return SnapshotState{}, errors.New(why)
	}
	region, own := placed(id)
	found, err := e.images(ctx, region, "ImageId.1", own)
	if err != nil {
		return SnapshotState{}, err
	}
	if len(found) != 1 || found[0].ID != own {
		return SnapshotState{}, errAbsent
	}
	im := found[0]
	disks := len(im.snapshots())
	s := SnapshotState{Ready: im.State == "available" && disks > 0, Failed: im.State != "available" && im.State != "pending", Detail: text(strings.TrimSpace(im.State + " " + im.Why))}
	switch {
	case im.State == "available" && disks == 0:
		s.Failed, s.Detail = true, "available, and without the snapshot of any disk"
	case im.State == "pending" && disks > 0:
		var list []string
		for i, snapshot := range im.snapshots() {
			list = append(list, fmt.Sprintf("SnapshotId.%d", i+1), snapshot)
		}
		if made, err := e.snapshots(ctx, region, list...); err == nil { // how far it is is no part of the proof
			var done []string
			for _, m := range made {
				done = append(done, m.Progress)
			}
			s.Detail = text("pending " + strings.Join(done, ", "))
		}
	}
	return s, ctx.Err()
}

type awsSnapshot struct {
	ID       string   `xml:"snapshotId"`
	Size     int64    `xml:"volumeSize"`
	Progress string   `xml:"progress"`
	Tags     []awsTag `xml:"tagSet>item"`
}

func (e ec2) snapshots(ctx context.Context, region string, in ...string) ([]awsSnapshot, error) {
	return awsList[awsSnapshot](ctx, e, region, "DescribeSnapshots", "snapshotSet", in...)
}

type awsVolume struct {
	ID   string   `xml:"volumeId"`
	Size int64    `xml:"size"`
	Type string   `xml:"volumeType"`
	Tags []awsTag `xml:"tagSet>item"`
	At   []struct {
		Instance string `xml:"instanceId"`
		Dies     bool   `xml:"deleteOnTermination"`
	} `xml:"attachmentSet>item"`
}

// leftovers are volumes (all of a stopped instance, else those that outlive it),
// Elastic IPs, images, and other snapshots of its volumes; once it is gone, volumes
// and addresses that nothing has, and its images.
func (e ec2) leftovers(ctx context.Context, in Instance, after State) ([]Leftover, error) {
	region, own := placed(in.ID)
	gone := in.Status.State == Gone
	filter := []string{"Filter.1.Name", "attachment.instance-id", "Filter.1.Value.1", own}
	if gone {
		filter = []string{"Filter.1.Name", "status", "Filter.1.Value.1", "available"}
	}
	volumes, err := awsList[awsVolume](ctx, e, region, "DescribeVolumes", "volumeSet", append(filter, "MaxResults", awsPage)...)
	if err != nil {
		return nil, err
	}
	var list []Leftover
	add := func(kind, id, name, month, note string) {
		list = append(list, Leftover{Kind: kind, ID: region + "/" + text(id), Name: text(name), PerMonth: month, Currency: "USD", Note: text(note)})
	}
	for _, v := range volumes {
		size := fmt.Sprintf("%d GB %s", v.Size, v.Type)
		if gone && len(v.At) == 0 {
			add("volume", v.ID, awsName(v.Tags), "", size+", on no instance")
		}
		for _, at := range v.At {
			if at.Instance != own || gone {
				continue
			}
			switch {
			case !at.Dies:
				add("volume", v.ID, awsName(v.Tags), "", size+", not deleted with the instance")
			case after == Stopped:
				add("disk", v.ID, awsName(v.Tags), "", size)
			}
		}
	}
	ips, err := awsList[struct {
		IP    string   `xml:"publicIp"`
		ID    string   `xml:"allocationId"`
		Used  string   `xml:"associationId"`
		Owner string   `xml:"instanceId"`
		Tags  []awsTag `xml:"tagSet>item"`
	}](ctx, e, region, "DescribeAddresses", "addressesSet")
	if err != nil {
		return nil, err
	}
	for _, ip := range ips {
		switch {
		case gone && ip.Used == "":
			add("ip", ip.ID, ip.IP, price(awsAddress()), "Elastic IP, on nothing")
		case !gone && ip.Owner == own:
			add("ip", ip.ID, ip.IP, price(awsAddress()), "Elastic IP, kept until it is released")
		}
	}
	images, err := e.images(ctx, region, "Owner.1", "self")
	if err != nil {
		return nil, err
	}
	told := map[string]bool{} // an image's snapshots go with it
	for _, im := range images {
		if strings.HasSuffix(im.Name, "-"+own) {
			var size int64
			for _, d := range im.Disks {
				size += d.Size
			}
			add("image", im.ID, im.Name, "", fmt.Sprintf("the snapshots of %d GB of disks; deregister it and delete them", size))
		}
		for _, id := range im.snapshots() {
			told[id] = true
		}
	}
	if gone || len(volumes) == 0 {
		return list, nil
	}
	of := []string{"Owner.1", "self", "Filter.1.Name", "volume-id"}
	for i, v := range volumes {
		of = append(of, fmt.Sprintf("Filter.1.Value.%d", i+1), v.ID)
	}
	snapshots, err := e.snapshots(ctx, region, of...)
	if err != nil {
		return nil, err
	}
	for _, s := range snapshots {
		if !told[s.ID] {
			add("snapshot", s.ID, awsName(s.Tags), "", fmt.Sprintf("of a volume of %d GB; what it holds is charged", s.Size))
		}
	}
	return list, nil
}
