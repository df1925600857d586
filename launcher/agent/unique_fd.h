#pragma once

#include "rendezvous/base/unique_fd.h"
