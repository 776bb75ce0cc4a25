package session

import "testing"

func TestJobName(t *testing.T) {
	for command, want := range map[string]string{
		"python train.py":                       "train",
		"python3 -u scripts/fine_tune.py --x 1": "fine_tune",
		"cd project && CUDA_VISIBLE_DEVICES=0 python -m pkg.train --epochs 3": "train",
		"torchrun --nproc_per_node=8 train.py":                                "train",
		"accelerate launch --config c.yaml sft.py":                            "c", // an option's value: wrong, and harmless
		"./run.sh":                        "run",
		"bash -c 'make all'":              "make",
		"nvidia-smi":                      "nvidia-smi",
		"sleep 5; echo done":              "sleep",
		"cd x":                            "cd",
		"jupyter lab --no-browser":        "lab",
		"mkdir -p out && echo hi > out/a": "echo",
		"sh":                              "sh",
		"   ":                             "",
		"source venv/bin/activate && python a.py": "a",
	} {
		if got := jobName(command); got != want {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
	}
}
