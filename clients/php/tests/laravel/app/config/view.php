<?php

return ['paths' => [__DIR__ . '/../views'], 'compiled' => getenv('DQ_APP') . '/storage/framework/views'];
